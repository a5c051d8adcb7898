"""What a kernel may send on its way to the grader's notebook, and what that costs: its cell."""

import textwrap

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.build.bundle import BUNDLE_FILE, bundle
from autograder.course import check_id
from autograder.grading.judging import public_bytes
from autograder.runner.notebook import UNREADABLE, NotebookRun, RunLimits, run_notebook
from autograder.runner.sandbox import Limits
from autograder.student.cases import CaseSet

TOPIC = "01_self_attention"
SETUP = f"import torch\nfrom autograder_student import load_check\ncheck = load_check({TOPIC!r})"
SOFTMAX = """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""
# Ways to the kernel's own sockets.
KERNEL = """
import json
from ipykernel.kernelapp import IPKernelApp
app = IPKernelApp.instance()
kernel, session, iopub = app.kernel, app.session, app.kernel.iopub_socket

def send(kind, content, parent=None):
    session.send(iopub, kind, content, parent=parent or kernel.get_parent())

def send_frames(*parts):
    frames = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    iopub.send_multipart([b"kernel", b"<IDS|MSG>", session.sign(frames), *frames])
"""


def run_around(*cells: str, sandbox: bool = True) -> NotebookRun:
    """These cells, then an exercise that is answered rightly, and a cell that says `on`."""
    check = new_code_cell('check("softmax", softmax)')
    check.metadata["nbgrader"] = {"grade_id": check_id("softmax"), "grade": True, "solution": False}
    first = [new_code_cell(textwrap.dedent(cell)) for cell in (SETUP, KERNEL, *cells)]
    notebook = new_notebook(
        cells=[*first, new_code_cell(SOFTMAX), check, new_code_cell("print('on')")]
    )
    cases = CaseSet.from_bytes(public_bytes(TOPIC))
    limits = RunLimits(kernel=Limits() if sandbox else None)
    files = {} if sandbox else {BUNDLE_FILE: bundle().encode()}
    return run_notebook(notebook, cases, public_bytes(TOPIC), limits, files)


def assert_that_nothing_was_lost(run: NotebookRun) -> None:
    assert run.verdicts()[0].passed, run.troubles
    assert said_by(run.notebook.cells[-1]) == "on\n"


def said_by(cell: NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


ASK_FOR_ROOM = "import zmq; print(kernel.iopub_thread.socket.getsockopt(zmq.SNDHWM))"


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "no sandbox"])
def test_a_cell_that_prints_a_great_deal_loses_nothing(sandbox: bool) -> None:
    """Each line is a message: beyond a thousand that wait zmq would drop some."""
    lines = "for number in range(12_000):\n    print(number, flush=True)"
    run = run_around(lines, ASK_FOR_ROOM, sandbox=sandbox)
    assert_that_nothing_was_lost(run)
    if sandbox:
        assert run.troubles == []
        assert said_by(run.notebook.cells[2]).endswith("11999\n")
        assert int(said_by(run.notebook.cells[3])) > 12_000  # a quick grader leaves no need of it


MALFORMED = {
    "a signature of its own": """
        iopub.send_multipart([b"kernel", b"<IDS|MSG>", b"0" * 64, b"{}", b"{}", b"{}", b"{}"])
        """,
    "no delimiter": "iopub.send_multipart([b'a', b'b'])",
    "a header that is a list": "send_frames([], {}, {}, {})",
    "no JSON": "send_frames(b'{', b'', b'', b'')",
    "nested without end": "send_frames({}, {}, {}, b'[' * 100_000 + b']' * 100_000)",
    "a parent that is a list": "send_frames({'msg_type': 'stream', 'msg_id': '1'}, [], {}, {})",
    "content that is a list": "send_frames({'msg_type': 'stream', 'msg_id': '1'}, {}, {}, [])",
    "a stream of lists": """
        send("stream", {"name": "stdout", "text": "a"})
        send("stream", {"name": "stdout", "text": ["b"]})
        """,
    "a stream of another name": "send('stream', {'name': 'verdict', 'text': 'passed'})",
    "a number that is none": "send('execute_input', {'code': '', 'execution_count': 'one'})",
    "half a character": """
        session.pack = lambda value: json.dumps(value, default=str).encode()
        send("stream", {"name": "stdout", "text": chr(0xD800)})
        send("display_data", {"data": {"text/plain": chr(0xD800)}, "metadata": {}})
        send("error", {"ename": chr(0xD800), "evalue": "", "traceback": []})
        """,
}


@pytest.mark.parametrize("code", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_message_costs_nobody(code: str) -> None:
    run = run_around(code)
    assert_that_nothing_was_lost(run)
    cell = run.notebook.cells[2]
    assert cell.execution_count is None or type(cell.execution_count) is int
    assert "passed" not in said_by(cell)
    assert "\ud800" not in str(cell)


def test_after_a_message_that_is_too_large_a_kernel_is_heard_by_the_judge_alone() -> None:
    run = run_around("send('stream', {'name': 'stdout', 'text': 'a' * (20 * 2**20)})")
    assert run.verdicts()[0].passed
    assert run.troubles == []
    assert len(str(run.notebook)) < 100_000


REPLIES = {
    "no status": {},
    "an error without a name": {"status": "error"},
    "a name that is a list": {"status": "error", "ename": [], "evalue": "", "traceback": []},
    "a payload that is a number": {"status": "ok", "payload": 3},
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_malformed_reply_costs_its_cell(reply: dict[str, object]) -> None:
    run = run_around(f"""
        class Reply(dict):
            pass
        before = session.send
        def forged(stream, kind, content=None, *given, **named):
            if kind == "execute_reply":
                session.send = before
                content = {reply!r}
            return before(stream, kind, content, *given, **named)
        session.send = forged
        """)
    assert_that_nothing_was_lost(run)
    assert run.troubles == []
    if "payload" not in reply:
        (error,) = run.notebook.cells[2].outputs
        assert (error.ename, error.evalue) == UNREADABLE


def test_copies_and_errors_and_widgets_count_as_what_a_cell_says() -> None:
    """What is shown in many places is kept as often; nothing of it may fill the grader's memory."""
    run = run_around(
        """
        for _ in range(300):
            send("display_data", {"data": {"text/plain": "1"}, "metadata": {},
                                  "transient": {"display_id": "a"}})
        """,
        """
        send("update_display_data", {"data": {"text/plain": "2" * 400_000}, "metadata": {},
                                     "transient": {"display_id": "a"}})
        """,
        """
        for _ in range(40):
            send("error", {"ename": "E", "evalue": "3" * 900_000, "traceback": []})
        """,
        """
        for number in range(40):
            data = {"state": {"a": "4" * 900_000}}
            send("comm_open", {"comm_id": str(number), "target_name": "jupyter.widget",
                               "data": data})
        """,
    )
    assert_that_nothing_was_lost(run)
    assert len(str(run.notebook)) < 5_000_000
