"""Grading draws no figures unless the course asks for it, and shows those that were handed in."""

import base64
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from autograder.build.release import read_notebook
from autograder.course import Course
from autograder.grading.feedback import FeedbackExporter
from autograder.grading.judging import public_bytes
from autograder.grading.submissions import Submission, read_submission, repair
from autograder.runner.notebook import RunLimits, run_notebook
from autograder.runner.pictures import LARGEST_PICTURE, NONE_HANDED_IN, handed_in
from autograder.runner.sandbox import Limits
from autograder.student.cases import CaseSet

TOPIC = "01_self_attention"
DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
DRAW_TWICE = f"print(1)\n{DRAW}\nplt.plot([2, 1])\nplt.show()"


def png(text: str = "a picture") -> str:
    return base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + text.encode()).decode()


def with_picture(source: str, *pictures: str) -> NotebookNode:
    outputs = [new_output("stream", text="as handed in")]
    outputs += [new_output("display_data", {"image/png": picture}) for picture in pictures]
    return new_code_cell(source, outputs=outputs)


def run(*cells: NotebookNode, sandbox: bool = True, figures: bool = False) -> list[NotebookNode]:
    """The cells after a run, each with its outputs."""
    limits = RunLimits(kernel=Limits() if sandbox else None, figures=figures)
    cases = CaseSet.from_bytes(public_bytes(TOPIC))
    notebook = deepcopy(new_notebook(cells=list(cells)))
    return list(run_notebook(notebook, cases, public_bytes(TOPIC), limits).notebook.cells)


def pictures_of(cell: NotebookNode) -> list[str]:
    return [
        output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})
    ]


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "no sandbox"])
def test_figures_that_were_handed_in_stand_where_none_was_drawn(sandbox: bool) -> None:
    one, two, none = run(
        with_picture(DRAW, png("first")),
        with_picture(DRAW_TWICE, png("second"), png("third")),
        with_picture(DRAW),
        sandbox=sandbox,
    )
    assert pictures_of(one) == [png("first")]
    assert pictures_of(two) == [png("second"), png("third")]
    assert two.outputs[0].text == "1\n", "what the run printed, and not what was handed in"
    assert [output.data["text/plain"] for output in none.outputs] == [NONE_HANDED_IN]


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "no sandbox"])
def test_where_the_course_asks_figures_are_drawn(sandbox: bool) -> None:
    (cell,) = run(with_picture(DRAW, png("handed in")), sandbox=sandbox, figures=True)
    (drawn,) = pictures_of(cell)
    assert drawn != png("handed in")
    assert len(base64.b64decode(drawn)) > 5000


def test_a_picture_takes_the_place_of_a_figure_alone() -> None:
    """A cell that draws nothing shows nothing, whatever was handed in with it."""
    silent, says = run(with_picture("1;", png()), with_picture("print('<Figure>')", png()))
    assert silent.outputs == []
    assert [output.text for output in says.outputs] == ["<Figure>\n"]


def test_of_outputs_that_were_handed_in_pictures_alone_are_kept() -> None:
    data = {"text/html": "<script>1</script>", "image/png": [png()[:10], png()[10:]]}
    odd: list[object] = [1, None, {}, {"data": 3}, {"data": {"image/png": 4}}]
    odd += [{"data": {"image/png": '"><script>'}}, {"data": {"image/png": "AAAA"}}]
    odd += [{"data": {"image/png": png() + "A" * LARGEST_PICTURE}}]
    (kept,) = handed_in([*odd, {"data": data}])
    assert kept.data == {"image/png": png()}
    assert [handed_in(outputs) for outputs in (None, 3, "x", {"a": 1})] == [[]] * 4
    assert len(handed_in([{"data": data}] * 1000)) < 1000


def test_reading_and_repair_keep_pictures_and_no_other_output(tmp_path: Path) -> None:
    release = read_notebook(Course.at(ROOT).release_notebook(TOPIC))
    notebook = deepcopy(release)
    notebook.cells.append(with_picture(DRAW, png()))
    folder = tmp_path / "alder" / TOPIC
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{TOPIC}.ipynb")
    read = read_submission(Submission("alder", TOPIC, folder))
    for made in (repair(read, release)[0], repair(notebook, release)[0]):
        assert pictures_of(made.cells[-1]) == [png()]
        assert len(made.cells[-1].outputs) == 1


def test_the_feedback_page_says_which_pictures_were_handed_in() -> None:
    cells = run(with_picture(DRAW, png()))
    page, _ = FeedbackExporter().from_notebook_node(new_notebook(cells=cells))
    assert f"data:image/png;base64,{png()}" in page
    assert page.count("as it was handed in") == 1
