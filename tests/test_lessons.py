"""Lessons keep their form, hand over no answer, and become pages that stand alone."""

import ast
import re
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest
from conftest import ROOT, Command
from nbformat import NotebookNode

from autograder.build.cases import build_public_cases, without_training
from autograder.exercises import TOPICS
from autograder.runner.answers import try_files
from autograder.student.verdicts import PASSED

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LEAST_WORDS, MOST_WORDS = 1500, 4200
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def cells_of(path: Path, kind: str) -> list[NotebookNode]:
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def prose_of(path: Path) -> str:
    return "\n\n".join(cell.source for cell in cells_of(path, "markdown"))


# ---- their form


@every_lesson
def test_a_lesson_opens_with_its_question_and_what_to_know(path: Path) -> None:
    first = cells_of(path, "markdown")[0].source
    assert first.startswith("# ")
    assert len(re.findall(r"^> \*\*.+\?\*\*$", first, re.MULTILINE)) == 1
    assert "**What you should know.**" in first
    assert "**How long it takes.**" in first


@every_lesson
def test_a_lesson_asks_before_it_shows(path: Path) -> None:
    prose = prose_of(path)
    asked = prose.count("**Predict.**")
    assert asked >= 4
    assert len(re.findall(r"<summary>Answer</summary>", prose)) >= asked
    assert prose.count("<details>") == prose.count("</details>")


@every_lesson
def test_a_lesson_ends_with_what_to_take_along(path: Path) -> None:
    last = prose_of(path).split("## What to take along")[1]
    assert last.count("\n| ") >= 4, "the rows of its summary"
    assert f"(../release/{path.stem}/{path.stem}.ipynb)" in last
    (following,) = re.findall(r"\]\((\w+\.ipynb)\)", last)
    assert following == LESSONS[(LESSONS.index(path) + 1) % len(LESSONS)].name


@every_lesson
def test_a_lesson_can_be_read_in_half_an_hour(path: Path) -> None:
    assert LEAST_WORDS < len(prose_of(path).split()) < MOST_WORDS


@every_lesson
def test_figures_come_in_the_style_of_the_course(path: Path) -> None:
    setup = cells_of(path, "code")[0].source
    assert "figures.use_style()" in setup


@pytest.mark.parametrize("topic", ["01_self_attention", "03_positional_encoding", "05_causal_mask"])
def test_there_is_a_control_where_moving_one_teaches(topic: str) -> None:
    cells = cells_of(ROOT / "notebooks" / f"{topic}.ipynb", "code")
    controls = [cell for cell in cells if "control" in cell.metadata.get("tags", [])]
    assert controls
    for cell in controls:
        (output,) = cell.outputs
        assert output.data["text/plain"].startswith("a control of: ")


@every_lesson
def test_a_lesson_holds_no_answer_to_its_assignment(path: Path, tmp_path: Path) -> None:
    """Its definitions, judged as if a student had handed them in."""
    definitions = [
        ast.unparse(node)
        for cell in cells_of(path, "code")
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        and "figures" not in ast.unparse(node)
    ]
    file = tmp_path / "answer.py"
    file.write_text("\n\n".join(definitions))
    topic = TOPICS[path.stem]
    cases = without_training(topic, build_public_cases(topic))
    ((_, verdicts),) = try_files(cases, [file], workers=1)
    assert len(verdicts) == len(cases.specs)
    assert [verdict.exercise for verdict in verdicts if verdict.status == PASSED] == []


# ---- their pages


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.links += [found[key] or "" for key in ("href", "src") if key in found]
        if tag == "img":
            self.images.append(found)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(python: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lessons") / "site"
    for _ in range(2):  # a second build replaces the first
        ended = python("tools/lessons/build.py", str(folder), cwd=ROOT)
        assert ended.returncode == 0, ended.stderr
    return folder


def test_pages_need_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.glob("*.html"))
    assert [page.stem for page in pages] == [*(path.stem for path in LESSONS), "index"]
    for path in pages:
        page = Page(path.read_text())
        assert not page.tags & {"script", "iframe", "object", "embed"}
        for link in page.links:
            if not link.startswith(("#", "data:image/png")):
                assert (site / link.partition("#")[0]).is_file(), f"{path.name}: {link}"


@every_lesson
def test_a_page_shows_figures_formulas_and_no_markup(path: Path, site: Path) -> None:
    page = Page((site / f"{path.stem}.html").read_text())
    assert page.images
    for image in page.images:
        assert (image["alt"] or "").startswith("Figure")
    outside = re.sub(r"`[^`]*`", "", page.text)
    assert not re.search(r"\\(frac|sqrt|text|cdot|operatorname)", outside), "a formula is left"


def test_an_assignment_can_be_taken_from_the_page(site: Path) -> None:
    for topic in TOPICS:
        with ZipFile(site / "assignments" / f"{topic}.zip") as archive:
            names = set(archive.namelist())
        assert {f"{topic}/{topic}.ipynb", f"{topic}/public_cases.safetensors"} <= names


def test_a_folder_that_holds_something_else_is_left_alone(python: Command, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    ended = python("tools/lessons/build.py", str(tmp_path), cwd=ROOT)
    assert ended.returncode != 0
    assert "holds something else" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
