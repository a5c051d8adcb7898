"""What lessons and feedback have in common as web pages: formulas as MathML, colours of code."""

from __future__ import annotations

import re
from collections.abc import Callable

import latex2mathml.converter
from pygments.formatters import HtmlFormatter

CODE_SPAN = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+?)\$", re.DOTALL)


def with_formulas(text: str, place: Callable[[str], str] = str) -> str:
    """LaTeX between dollar signs as MathML; what stands in code stays. `place` says what is put
    where a formula stood, given its MathML."""

    def convert(found: re.Match[str]) -> str:
        latex, kind = found["block"] or found["inline"], "block" if found["block"] else "inline"
        try:
            return place(latex2mathml.converter.convert(latex.strip(), display=kind))
        except Exception:  # a student's formula may be anything
            return found[0]

    pieces, end = [], 0
    for code in CODE_SPAN.finditer(text):
        pieces += [FORMULA.sub(convert, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*pieces, FORMULA.sub(convert, text[end:])])


def code_colours() -> str:
    """Pygments' colours as CSS, for a light page and for a dark one."""
    light, dark = (
        HtmlFormatter(style=style).get_style_defs(".highlight")
        for style in ("default", "github-dark")
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
