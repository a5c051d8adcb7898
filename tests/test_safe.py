"""What formgrader is given to show holds nothing that its page would run."""

import re

import nbformat
import pytest
from nbconvert.filters import markdown2html_mistune
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from autograder.grading.safe import safe_to_show

PICTURE = "iVBORw0KGgo="


def shown(*outputs: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    notebook = new_notebook(cells=[new_code_cell("1", outputs=list(outputs))])
    before = nbformat.writes(notebook)
    made = safe_to_show(notebook)
    nbformat.validate(made)
    assert nbformat.writes(notebook) == before, "the record keeps what there was"
    return list(made.cells[0].outputs)


def test_text_and_pictures_stay() -> None:
    data = {"text/plain": "<b>3</b>", "image/png": PICTURE, "text/html": "<script>1</script>"}
    (output,) = shown(new_output("execute_result", data=data, execution_count=1))
    assert output.data == {"text/plain": "<b>3</b>", "image/png": PICTURE}
    stream = new_output("stream", text="<script>")
    error = new_output("error", ename="E", evalue="<script>", traceback=["<script>"])
    assert shown(stream, error) == [stream, error]


@pytest.mark.parametrize(
    "kind",
    [
        "text/html",
        "application/javascript",
        "image/svg+xml",
        "text/latex",
        "text/markdown",
        "application/vnd.jupyter.widget-view+json",
    ],
)
def test_what_a_page_would_run_is_left_out_by_name(kind: str) -> None:
    (output,) = shown(new_output("display_data", data={kind: "<script>1</script>"}))
    assert output.data == {"text/plain": f"(not shown here: {kind})"}


def test_a_picture_that_is_none_is_left_out() -> None:
    data = {"image/png": '"><script>1</script>'}
    (output,) = shown(new_output("display_data", data=data, metadata={"image/png": {"width": '"'}}))
    assert output.data == {"text/plain": "(not shown here: image/png)"}
    assert output.metadata == {}


@pytest.mark.parametrize("make", [new_markdown_cell, new_raw_cell])
def test_html_in_text_is_shown_as_it_was_typed(make: type) -> None:
    text = "a < b, <script>x</script> <!-- --> $\\href{javascript:x}{y}$ **bold** $\\sqrt{d}$"
    made = safe_to_show(new_notebook(cells=[make(text)])).cells[0].source
    assert made.startswith("a < b, &lt;script>x&lt;/script> &lt;!-- --> $\\backslash href{")
    assert made.endswith("**bold** $\\sqrt{d}$")


def test_pictures_attached_to_text_are_left_out() -> None:
    cell = new_markdown_cell("![x](attachment:a.svg)")
    cell["attachments"] = {"a.svg": {"image/svg+xml": "<svg onload='x'/>"}}
    assert "attachments" not in safe_to_show(new_notebook(cells=[cell])).cells[0]


@pytest.mark.parametrize(
    "text",
    [
        "[click](javascript:alert(1))",
        "[click](java&#115;cript:alert(1))",
        "[click][x]\n\n[x]: javascript:alert(1)",
        "[x]\n\n[x]: data:text/html,y",
        "![p](http://elsewhere/p.png)",
        "<javascript:alert(1)>",
    ],
)
def test_no_picture_in_text_is_loaded_and_no_link_is_a_script(text: str) -> None:
    made = safe_to_show(new_notebook(cells=[new_markdown_cell(text)])).cells[0].source
    harm = r'<img |href="(?!http://elsewhere/)'  # an address that is shown as what it is stays
    assert re.search(harm, markdown2html_mistune(text))
    assert not re.search(harm, markdown2html_mistune(made))


def test_brackets_elsewhere_stay() -> None:
    text = "x[0] = [1, 2] and $a_{[i]}$\n\n- [ ] to do"
    assert safe_to_show(new_notebook(cells=[new_markdown_cell(text)])).cells[0].source == text
