"""Odd submissions with right answers, through real kernels: none loses points, or the class."""

import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, TOPIC, Command
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.build.release import read_notebook
from autograder.course import Course
from autograder.grading.classrun import Result, grade_class
from autograder.sample import fill

ANSWERS = (ROOT / "solutions" / "self_attention.py").read_text(encoding="utf-8")
DISPLAYS = """
class Odd:
    def _repr_mimebundle_(self, **options):
        return {"text/plain": "t", "application/x-t": [1]}


Odd()
"""
ODD_MESSAGE = """
from IPython import get_ipython

shell = get_ipython()
shell.display_pub.session.send(
    shell.display_pub.pub_socket, "display_data", {"nope": 1}, parent=shell.parent_header
)
"""


def with_cell(source: str, place: int = 4) -> Callable[[NotebookNode, Path], None]:
    def change(notebook: NotebookNode, folder: Path) -> None:
        notebook.cells.insert(place, new_code_cell(source))

    return change


def with_half_a_pair(notebook: NotebookNode, folder: Path) -> None:
    notebook.cells.insert(1, new_markdown_cell("half a pair: \udc80"))
    notebook.cells.insert(2, new_code_cell("print('\\udc80'); raise ValueError('\\udc80')"))


def with_deep_metadata(notebook: NotebookNode, folder: Path) -> None:
    deep: dict = {}
    for _ in range(150):
        deep = {"a": deep}
    notebook.cells.insert(1, new_markdown_cell("deep", metadata=deep))


def with_odd_files(notebook: NotebookNode, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "broken").symlink_to(folder / "nowhere")
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        end.bind("end")
        os.chdir(here)


def with_timestamp(text: str) -> Callable[[NotebookNode, Path], None]:
    def change(notebook: NotebookNode, folder: Path) -> None:
        (folder / "timestamp.txt").write_text(text)

    return change


ODD: dict[str, Callable[[NotebookNode, Path], None]] = {
    "half-a-pair": with_half_a_pair,
    "deep-metadata": with_deep_metadata,
    "odd-files": with_odd_files,
    "odd-display": with_cell(DISPLAYS),
    "odd-message": with_cell(ODD_MESSAGE),
    "quits": with_cell("quit()"),
    "garbage-time": with_timestamp("garbage"),
    "other-zone": with_timestamp("2026-10-12 23:00:00 +02:00"),
    "huge-time": with_timestamp("99999999999999999999"),
    "check-replaced": with_cell("check = lambda *given: None", 6),
}


@pytest.fixture(scope="module")
def odd_class(course: Course, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("odd")
    odd = replace(course, submitted=folder / "submitted", into=folder / "results")
    for student, change in ODD.items():
        place = odd.submitted / student / TOPIC
        place.mkdir(parents=True)
        notebook = fill(read_notebook(course.release_notebook(TOPIC)), ANSWERS)
        change(notebook, place)
        text = json.dumps(notebook)
        (place / f"{TOPIC}.ipynb").write_text(text)
    (odd.submitted / "eve").mkdir()
    (odd.submitted / "eve" / f"{TOPIC}.ipynb").write_text("{}")
    (odd.submitted / "dan" / "01_self_atention").mkdir(parents=True)
    (odd.submitted / ("long" * 60) / TOPIC).mkdir(parents=True)
    results = grade_class(odd, [TOPIC], lambda *given: None)
    assert (odd.into / "grades.csv").is_file()
    return {result.student: result for result in results}


@pytest.mark.parametrize("student", [name for name in ODD if name != "check-replaced"])
def test_right_answers_have_their_points(student: str, odd_class: dict[str, Result]) -> None:
    result = odd_class[student]
    assert (result.points, result.broken, result.ungradable) == (10, "", "")
    assert not [note for note in result.notes if note.startswith("late")]


def test_what_ended_a_kernel_is_named(odd_class: dict[str, Result]) -> None:
    assert odd_class["quits"].notes == ["the kernel ended in cell 5"]


def test_a_check_that_does_not_ask_is_no_missing_answer(odd_class: dict[str, Result]) -> None:
    result = odd_class["check-replaced"]
    assert result.points == 0
    assert result.notes[0] == "softmax: raised"


def test_what_lies_elsewhere_is_named(odd_class: dict[str, Result]) -> None:
    assert odd_class["eve"].ungradable == (
        f"it should lie in a folder, as eve/{TOPIC}/{TOPIC}.ipynb"
    )
    assert odd_class["dan"].ungradable == f"there is no topic of that name (meant: {TOPIC}?)"
    assert "cannot be used" in odd_class["long" * 60].ungradable


def test_a_file_to_try_must_be_a_python_file(
    autograder: Command, course: Course, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for file in (tmp_path / "pipe.py", course.release_notebook(TOPIC)):
        said = autograder("try", TOPIC, file, cwd=course.root, seconds=60)
        assert said.returncode == 2
        assert said.stderr.startswith("autograder: ")
        assert "Traceback" not in said.stderr
