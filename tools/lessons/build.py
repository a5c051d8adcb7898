"""The lessons as web pages: `python tools/lessons/build.py FOLDER` writes them, with an index.

The pages stand alone: no script, no font, nothing from another host. Formulas become MathML, and
the assignments lie beside the pages as zip files.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import nbformat
from jinja2 import Environment, FileSystemLoader
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from autograder.build.webpage import code_colours, with_formulas

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WORDS_A_MINUTE = 220
SECONDS_A_CELL = 12  # to look at what a cell shows

ASSIGNMENT = re.compile(r"\.\./release/(\w+)/\1\.ipynb")
LESSON = re.compile(r"\]\((\d\d_\w+)\.ipynb")
FIGURE_TEXT = "*Figure (text alternative):*"


@dataclass(frozen=True)
class Lesson:
    name: str
    title: str
    question: str
    minutes: int
    body: str


def read_lesson(path: Path) -> Lesson:
    notebook = nbformat.read(path, as_version=4)
    first = notebook.cells[0].source
    title = first.splitlines()[0].removeprefix("# ")
    asked = re.search(r"^> \*\*(.+?)\*\*", first, re.MULTILINE | re.DOTALL)
    question = asked[1].replace("\n> ", " ") if asked else ""
    minutes = reading_time(notebook)
    return Lesson(path.stem, title, question, minutes, as_html(notebook))


def reading_time(notebook: NotebookNode) -> int:
    """Minutes, from the words of the prose and the number of cells to look at."""
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    return round(words / WORDS_A_MINUTE + cells * SECONDS_A_CELL / 60)


def as_html(notebook: NotebookNode) -> str:
    """The body of the page."""
    cells = notebook.cells
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "markdown":
            cell.source = with_links(with_formulas(cell.source))
        elif "control" in cell.metadata.get("tags", []):
            cell.outputs = [control_note()]
        elif following is not None and following.source.startswith(FIGURE_TEXT):
            cell.metadata["alt"] = "Figure; the text below says what it shows."
    exporter = HTMLExporter(template_name="basic")
    exporter.anchor_link_text = ""
    body: str = exporter.from_notebook_node(notebook)[0]
    return body.replace("<table", '<div class="wide"><table').replace("</table>", "</table></div>")


def control_note() -> NotebookNode:
    text = "<p class='note'>In JupyterLab this cell shows a control to play with.</p>"
    return nbformat.v4.new_output("display_data", {"text/html": text})


def with_links(text: str) -> str:
    """Links to notebooks as links to what lies beside the pages."""
    return LESSON.sub(r"](\1.html", ASSIGNMENT.sub(r"assignments/\1.zip", text))


def build(folder: Path) -> list[Lesson]:
    """All pages into `folder`, which is replaced where an earlier build made it."""
    lessons = [read_lesson(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    templates = Environment(loader=FileSystemLoader(HERE), autoescape=True)
    page, index = templates.get_template("page.html.j2"), templates.get_template("index.html.j2")
    style = (HERE / "lessons.css").read_text() + code_colours()
    mark = folder / ".made-by-lessons"
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise SystemExit(f"{folder} holds something else: name a folder that is new or empty.")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "assignments").mkdir(parents=True)
    mark.touch()
    (folder / "lessons.css").write_text(style)
    (folder / "index.html").write_text(index.render(lessons=lessons))
    for lesson in lessons:
        (folder / f"{lesson.name}.html").write_text(page.render(lesson=lesson, lessons=lessons))
        pack(ROOT / "release" / lesson.name, folder / "assignments" / f"{lesson.name}.zip")
    return lessons


def pack(folder: Path, target: Path) -> None:
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder.parent))


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    for lesson in build(folder):
        print(f"{folder / lesson.name}.html  {lesson.minutes} minutes  {lesson.title}")
    print(f"{folder / 'index.html'}: open it, or put the folder on any static host.")


if __name__ == "__main__":
    main()
