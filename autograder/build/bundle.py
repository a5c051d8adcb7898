"""The student side joined to one file, so that a release folder works wherever it lands."""

from __future__ import annotations

import ast
from pathlib import Path

import autograder.student

BUNDLE_FILE = "autograder_student.py"
MODULES = (
    "tensors",
    "cases",
    "bans",
    "probes",
    "evaluation",
    "verdicts",
    "judge",
    "channel",
    "check",
)
_HEAD = '''"""The checks of this course's notebooks, in one file. Generated: do not edit.

A notebook imports it where the package `autograder` is not installed. It needs torch alone.
"""

from __future__ import annotations
'''


def bundle() -> str:
    """The source of `autograder.student` as one module.

    The modules import one another by name alone and share no name (a test holds them to it), so
    joining them takes no more than leaving those imports out and gathering the others on top.
    """
    imports: dict[str, None] = {}
    bodies = []
    for name in MODULES:
        source = (Path(autograder.student.__file__).parent / f"{name}.py").read_text()
        found, body = _split(source)
        imports.update(dict.fromkeys(found))
        bodies.append(f"# --- {name} " + "-" * (93 - len(name)) + "\n\n" + body)
    ours = ("from autograder", "from __future__")
    kept = sorted(line for line in imports if not line.startswith(ours))
    return "\n".join([_HEAD, *kept, "", "", "\n\n".join(bodies)])


def _split(source: str) -> tuple[list[str], str]:
    """The top-level imports of a module, one line each, and the rest without its docstring."""
    tree = ast.parse(source)
    lines = source.splitlines()
    imports = []
    for node in tree.body:
        is_docstring = node is tree.body[0] and isinstance(node, ast.Expr)
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring:
            assert node.end_lineno is not None
            if not is_docstring:
                imports.append(ast.unparse(node))
            for number in range(node.lineno - 1, node.end_lineno):
                lines[number] = ""
    return imports, "\n".join(lines).strip() + "\n"
