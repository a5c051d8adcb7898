"""Run lessons in place and keep what they print: `python tools/lessons/run.py FILE...`."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(path: Path) -> None:
    """Execute the notebook from the top, and store what does not depend on when it ran."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, resources=resources, timeout=120)
    client.execute()
    name_cells(notebook.cells)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            clean(cell, number)
    notebook["metadata"] = METADATA
    nbformat.write(notebook, path)


def name_cells(cells: list[NotebookNode]) -> None:
    """Ids that say in which section a cell stands, for those that have a random one."""
    section, count = "opening", 0
    for cell in cells:
        heading = re.search(r"^## (?:\d+\. )?(.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            words = re.findall(r"[a-z0-9]+", heading[1].lower())
            section, count = "-".join(words)[:50], 0
        count += 1
        if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f-]*)?|cell-\d+", cell["id"]):
            cell["id"] = f"{section}-{count}"


def clean(cell: NotebookNode, number: int) -> None:
    cell.metadata.pop("execution", None)
    for output in cell.outputs:
        widget = output.get("data", {}).get("application/vnd.jupyter.widget-view+json")
        if widget:
            widget["model_id"] = f"{number:032}"  # it would be another one in each run


def main() -> None:
    for name in sys.argv[1:]:
        start = time.perf_counter()
        run(Path(name))
        print(f"{name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
