"""Figures as they were handed in.

No score depends on a figure, and to draw them takes half of the time that a notebook does: unless
the course asks for it, grading draws none, and shows those that came with the submission.
"""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

NOT_DRAWN = ("--InlineBackend.figure_formats=set()",)  # what a kernel is told
LARGEST_PICTURE = 4 * 2**20  # characters of base64; ten times what figures here take
MOST_PICTURES = 20  # of one cell
NONE_HANDED_IN = "(Grading draws no figures, and none was handed in here.)"
HANDED_IN = {"autograder": "handed-in"}
_PNG = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/=\s]*")  # the signature of the format, in base64
_FIGURE = re.compile(r"<Figure size [\d.e+x]+ with \d+ Axes>")  # what matplotlib says of one


def handed_in(outputs: object) -> list[NotebookNode]:
    """The PNG pictures among outputs that may be anything, and nothing else of them."""
    found = []
    for output in outputs if isinstance(outputs, list) else []:
        data = output.get("data") if isinstance(output, dict) else None
        text = data.get("image/png") if isinstance(data, dict) else None
        if isinstance(text, list) and all(isinstance(line, str) for line in text):
            text = "".join(text)
        if isinstance(text, str) and len(text) <= LARGEST_PICTURE and _PNG.fullmatch(text):
            found.append(_shown(text))
    return found[:MOST_PICTURES]


def put_in_place(cell: NotebookNode, pictures: list[NotebookNode]) -> None:
    """Show the first picture for the first figure that this cell did not draw, and so on."""
    left = iter(pictures)
    cell.outputs = [
        next(left, _none_shown()) if _is_undrawn(output) else output for output in cell.outputs
    ]


def _is_undrawn(output: dict[str, Any]) -> bool:
    data = output.get("data", {})
    return set(data) == {"text/plain"} and bool(_FIGURE.fullmatch(str(data["text/plain"])))


def _shown(picture: str) -> NotebookNode:
    made: NotebookNode = new_output(
        "display_data", {"image/png": picture}, metadata=dict(HANDED_IN)
    )
    return made


def _none_shown() -> NotebookNode:
    made: NotebookNode = new_output("display_data", {"text/plain": NONE_HANDED_IN})
    return made
