"""Lessons and assignments run, fail only where they should, and read well without their figures."""

import re
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, Command
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.release import read_notebook
from autograder.course import Course, check_id, grade_id_of
from autograder.exercises import TOPICS
from autograder.exercises.posing import Exercise

LONGEST_CELL = 30  # lines
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOURCES = sorted((ROOT / "source").glob("*/*.ipynb"))
RELEASES = sorted((ROOT / "release").glob("*/*.ipynb"))


@pytest.fixture(params=[*LESSONS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def notebook(request: pytest.FixtureRequest) -> NotebookNode:
    return read_notebook(request.param)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


# ---- they run


def test_each_topic_has_its_notebooks() -> None:
    for paths in (LESSONS, SOURCES, RELEASES):
        assert [path.stem for path in paths] == list(TOPICS)


def test_the_solutions_in_the_source_pass_every_check(python: Command) -> None:
    """In place, where the notebook finds the cases in release/."""
    options = [
        "--nbval-lax",
        "--nbval-current-env",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    said = python("-m", "pytest", *options, "-o", "addopts=", "source", cwd=ROOT)
    assert said.returncode == 0, said.stdout[-3000:]
    count = sum(len(code_cells(read_notebook(path))) for path in SOURCES)
    assert f"{count} passed" in said.stdout


@pytest.fixture(scope="module", params=TOPICS)
def unanswered(request: pytest.FixtureRequest, course: Course) -> NotebookNode:
    """The release as a student gets it, executed to its end."""
    path = course.release_notebook(request.param)
    notebook = read_notebook(path)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, resources=resources, allow_errors=True, timeout=120)
    executed: NotebookNode = client.execute()
    executed.metadata["topic"] = request.param
    return executed


def exercises_of(notebook: NotebookNode) -> list[Exercise]:
    return TOPICS[notebook.metadata["topic"]].exercises


def errors_in(cell: NotebookNode) -> list[NotebookNode]:
    return [output for output in cell.outputs if output.output_type == "error"]


def test_the_release_fails_only_where_answers_are_missing(unanswered: NotebookNode) -> None:
    names = [exercise.id for exercise in exercises_of(unanswered)]
    failed: set[str] = set()
    for cell in code_cells(unanswered):
        for error in errors_in(cell):
            failed.add(cell.id)
            if grade_id_of(cell) in map(check_id, names):
                untrained = grade_id_of(cell) == "check_toy_task"
                assert error.ename == "NameError" if untrained else "CheckFailed"
            elif error.ename == "NameError":
                name = re.search(r"name '(\w+)'", error.evalue)
                assert name, error.evalue
                assert name[1] in names_set_by(unanswered, failed), f"{cell.id}: {error.evalue}"
            else:
                assert error.ename == "NotImplementedError", f"{cell.id}: {error.evalue}"
                assert any(re.search(rf"\b{name}\(", cell.source) for name in names) or any(
                    line for line in error.traceback if "NotImplementedError" in line
                )
    checks = {cell.id for cell in code_cells(unanswered) if grade_id_of(cell).startswith("check_")}
    assert checks <= failed
    assert len(failed) < len(code_cells(unanswered))


def names_set_by(notebook: NotebookNode, cells: set[str]) -> set[str]:
    """What the failed cells would have defined, so that later ones miss it."""
    sources = [cell.source for cell in notebook.cells if cell.id in cells]
    return {name for source in sources for name in re.findall(r"\b[A-Za-z_]\w*\b", source)}


def test_a_failed_check_says_what_is_missing_and_shows_no_code_of_ours(
    unanswered: NotebookNode,
) -> None:
    for exercise in exercises_of(unanswered):
        if exercise.id == "toy_task":  # there is no model yet, so the check is not reached
            continue
        (cell,) = [c for c in unanswered.cells if grade_id_of(c) == check_id(exercise.id)]
        (error,) = errors_in(cell)
        text = "\n".join(error.traceback)
        assert f"✘ {exercise.id}: missing (not-implemented), 0 of {exercise.points:g}" in text
        for trace in ("Traceback", "File ", ".py", "\x1b", "autograder"):
            assert trace not in text


# ---- they read well


def test_no_place_of_a_machine_is_named(notebook: NotebookNode) -> None:
    text = nbformat.writes(notebook)
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    places = r"/(?:home|Users|tmp|root|usr|opt|work|mnt|srv|var|private)/|[A-Z]:\\\\|site-packages"
    assert re.findall(places, text) == []


@pytest.mark.parametrize("path", [*SOURCES, *RELEASES], ids=lambda path: path.parts[-3])
def test_assignments_keep_no_outputs(path: Path) -> None:
    for cell in code_cells(read_notebook(path)):
        assert (cell.outputs, cell.execution_count) == ([], None), cell.id


def test_lessons_are_executed_in_order_and_without_an_error() -> None:
    for path in LESSONS:
        cells = code_cells(read_notebook(path))
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
        assert not [cell.id for cell in cells if errors_in(cell)]


def test_every_figure_has_a_text_beside_it(notebook: NotebookNode) -> None:
    """In the cell below, or in one further down before the next code."""
    cells = notebook.cells
    figures = [i for i, cell in enumerate(cells) if cell.cell_type == "code" and draws(cell)]
    assert figures
    for place in figures:
        following = []
        for cell in cells[place + 1 :]:
            if cell.cell_type == "code":
                break
            following.append(cell.source)
        found = re.search(r"\(text alternative\):\*?\s*(.{60})", "\n".join(following), re.DOTALL)
        assert found, f"no text alternative below {cells[place].id}"
        assert "FIXME" not in found[1]


def draws(cell: NotebookNode) -> bool:
    if "control" in cell.metadata.get("tags", []):
        return False  # it moves a figure that stands elsewhere
    shown = any("image/png" in output.get("data", {}) for output in cell.outputs)
    return shown or "plt.show()" in cell.source


def test_no_cell_is_long(notebook: NotebookNode) -> None:
    lengths = {cell.id: len(cell.source.splitlines()) for cell in code_cells(notebook)}
    assert {name: count for name, count in lengths.items() if count > LONGEST_CELL} == {}


def test_cell_ids_are_unique_and_say_something(notebook: NotebookNode) -> None:
    names = [cell.id for cell in notebook.cells]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f-]*)?", name)] == []
