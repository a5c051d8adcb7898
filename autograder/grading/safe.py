"""A graded notebook that is safe to look at in formgrader, whose pages run what they are given.

formgrader shows a notebook in the instructor's own Jupyter session: a script in it could give
grades, or run code. So of outputs text and PNG or JPEG pictures stay, and HTML and links in
written text are shown as they were typed: a link may be a script, a picture tells who looked.
"""

from __future__ import annotations

import re
from copy import copy

from nbformat import NotebookNode

SHOWN = ("text/plain", "image/png", "image/jpeg")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_TAG = re.compile(r"<(?=[a-zA-Z/!?])")
_LINK = re.compile(r"\](?=\s*[(\[:])")  # to a place that is named here, or elsewhere
_COMMAND = re.compile(r"\\(?=(?:href|unicode|require|style|class|cssId)\b)")  # of a formula


def safe_to_show(notebook: NotebookNode) -> NotebookNode:
    """The notebook, without what a page would run."""
    made = copy(notebook)
    made["cells"] = [_safe_cell(cell) for cell in notebook.cells]
    return made


def _safe_cell(cell: NotebookNode) -> NotebookNode:
    made = copy(cell)
    if cell.cell_type == "code":
        made["outputs"] = [_safe_output(output) for output in cell.get("outputs", [])]
    else:
        made.pop("attachments", None)
        text = _COMMAND.sub(r"\\backslash ", _TAG.sub("&lt;", cell.source))
        made["source"] = _LINK.sub("&#93;", text)
    return made


def _safe_output(output: NotebookNode) -> NotebookNode:
    if "data" not in output:
        return output  # a stream or an error, which pages escape
    made = copy(output)
    kept = {kind: output.data[kind] for kind in SHOWN if _is_sound(kind, output.data.get(kind))}
    if not kept and output.data:
        kept = {"text/plain": f"(not shown here: {', '.join(sorted(map(str, output.data)))})"}
    made["data"] = NotebookNode(kept)
    made["metadata"] = NotebookNode()
    return made


def _is_sound(kind: str, data: object) -> bool:
    if not isinstance(data, str):
        return False
    return kind == "text/plain" or _BASE64.fullmatch(data) is not None
