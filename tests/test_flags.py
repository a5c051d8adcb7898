"""Flags: what a submission tried is seen, with evidence, and an honest one has none."""

import textwrap

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from test_grading import CRASHES, EXITS, FORGERIES, RIGHT, WRONG, run_cells

from autograder.build.release import read_notebook
from autograder.course import Course, check_id
from autograder.exercises import TOPICS
from autograder.grading.judging import public_bytes
from autograder.runner.flags import (
    KINDS,
    LONGEST_EVIDENCE,
    MOST_OF_A_KIND,
    Flags,
    note_claims,
    note_source,
)
from autograder.runner.notebook import NotebookRun
from autograder.student.cases import CaseSet
from autograder.student.verdicts import Verdict

TOPIC = "01_self_attention"


def kinds(run: NotebookRun) -> set[str]:
    found = {flag.kind for flag in run.flags}
    assert found <= set(KINDS)
    return found


def evidence(run: NotebookRun, kind: str) -> str:
    return "\n".join(flag.evidence for flag in run.flags if flag.kind == kind)


# ---- while it runs


def test_honest_notebooks_have_none() -> None:
    assert kinds(run_cells(RIGHT)) == set()
    assert kinds(run_cells(WRONG)) == set()


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_seen(name: str) -> None:
    found = kinds(run_cells(WRONG, FORGERIES[name]))
    wanted = {
        "another check": {"claims-more", "judge-touched"},
        "outputs of one's own": {"claims-more", "judge-touched"},
        "a judge that is always pleased": {"claims-more", "judge-touched"},
        "cells that are not run": {"claims-more", "judge-touched"},
        "an answer to the judge's first question for all": {"malformed-message", "judge-touched"},
    }
    assert found == wanted[name]


def test_a_kernel_that_ends_by_itself_while_it_answers_is_seen() -> None:
    answers = RIGHT | {
        "softmax": "def softmax(scores, dim=-1):" + EXITS,
        "attention": "def attention(q, k, v):" + CRASHES,
    }
    run = run_cells(answers)
    assert kinds(run) == {"ended-kernel"}
    said = evidence(run, "ended-kernel")
    assert "with status 0 as it answered softmax" in said
    assert "by signal 11 (Segmentation fault) as it answered attention" in said


def test_a_kernel_that_leaves_in_a_cell_of_its_own_is_no_sign() -> None:
    assert kinds(run_cells(RIGHT, "exit()")) == set()
    assert kinds(run_cells(RIGHT, "import os\nos._exit(3)")) == set()


def test_what_is_opened_outside_is_seen() -> None:
    run = run_cells(
        RIGHT,
        """
        import os, pathlib, socket, threading
        attempts = [
            lambda: open("/proc/self/environ"),
            lambda: pathlib.Path("/srv/course/gradebook.db").read_bytes(),
            lambda: open("../../../gradebook.db"),
            lambda: os.listdir("/proc"),
            lambda: os.kill(77, 9),
            lambda: socket.create_connection(("10.9.8.7", 80), timeout=1),
            lambda: socket.socket(socket.AF_UNIX).connect("/run/a.sock"),
            lambda: socket.socket(socket.AF_UNIX).connect("\\0of-the-machine"),
        ]
        os.symlink("/etc/shadow", "mine")
        attempts.append(lambda: open("mine"))
        for attempt in attempts:
            try:
                attempt()
            except OSError:
                pass
        later = threading.Thread(target=lambda: open("/srv/solutions.py"))
        threading.excepthook = lambda *_: None
        later.start(), later.join()
        """,
    )
    assert kinds(run) == {"refused-read", "refused-connection", "refused-signal"}
    said = evidence(run, "refused-read")
    for place in ("/proc/self/environ", "/srv/course/gradebook.db", "/etc/shadow", "/proc"):
        assert place in said
    assert "/srv/solutions.py" in said
    assert "gradebook.db" in said.replace("/srv/course/gradebook.db", "")
    connections = evidence(run, "refused-connection")
    assert all(place in connections for place in ("10.9.8.7", "/run/a.sock", "of-the-machine"))
    assert "signal 9 to process 77" in evidence(run, "refused-signal")


def test_what_a_notebook_does_at_home_is_no_sign() -> None:
    run = run_cells(
        RIGHT,
        """
        import json, os, pathlib, random, signal, sqlite3, subprocess, sys, tempfile
        import multiprocessing
        import matplotlib.pyplot as plt
        import numpy, torch.utils.data
        try:
            import a_module_that_is_missing
        except ImportError:
            pass
        pathlib.Path("notes.txt").write_text("x")
        open(os.path.expanduser("~/more.txt"), "w").write("x")
        open("notes.txt").read(), os.listdir(), os.listdir(".")
        with tempfile.TemporaryDirectory() as place:
            pathlib.Path(place, "a").touch()
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(9)"])
        os.kill(child.pid, signal.SIGTERM)
        child.wait()
        with multiprocessing.Manager() as manager:  # talks through a socket in the work folder
            assert list(manager.list([1])) == [1]
        torch.save(torch.ones(2), "t.pt"), torch.load("t.pt")
        plt.plot([1, 2]), plt.savefig("p.png"), plt.show()
        """,
    )
    assert [cell.outputs for cell in run.notebook.cells[1:2] if "Error" in str(cell.outputs)] == []
    assert kinds(run) == set()


def test_evidence_is_kept_short_and_once() -> None:
    flags = Flags()
    for _ in range(2):
        flags.note("refused-read", "x" * 5000 + "\n" + "\udcff")
    assert len(flags) == 1
    assert len(flags[0].evidence) == LONGEST_EVIDENCE
    for number in range(50):
        flags.note("refused-read", str(number))
    assert len(flags) == MOST_OF_A_KIND


def test_what_a_kernel_tells_steers_no_terminal() -> None:
    flags = Flags()
    flags.note("k\x1b[31m\nrow", "evil \x1b[2K")
    assert [(flag.kind, flag.evidence) for flag in flags] == [("malformed-message", "evil ?[2K")]


# ---- what check cells claim


def checked(*outputs: NotebookNode) -> NotebookNode:
    cell = new_code_cell("check('softmax', softmax)", outputs=list(outputs))
    cell.metadata["nbgrader"] = {"grade_id": check_id("softmax")}
    return cell


ERROR = new_output("error", ename="CheckFailed", evalue="✘", traceback=[])
PASSED = new_output("stream", name="stdout", text="✔ softmax passed: 3 of 3 points.\n")


@pytest.mark.parametrize(
    ("outputs", "status", "is_flagged"),
    [
        ([ERROR], "failed", False),
        ([PASSED], "passed", False),
        ([], "passed", False),
        ([], "failed", True),
        ([PASSED], "failed", True),
        ([PASSED, ERROR], "failed", True),
        ([PASSED], "missing", True),
    ],
)
def test_a_claim_is_compared_with_the_verdict(
    outputs: list[NotebookNode], status: str, is_flagged: bool
) -> None:
    flags = Flags()
    note_claims(flags, [checked(*outputs)], [Verdict("softmax", status, 0.0, 3.0, None, "")])
    assert [flag.kind for flag in flags] == ["claims-more"] * is_flagged


# ---- what the source names


def flags_of_source(*cells: str, passed: str = "softmax") -> Flags:
    notebook = new_notebook(cells=[new_code_cell(textwrap.dedent(cell)) for cell in cells])
    specs = CaseSet.from_bytes(public_bytes(TOPIC)).specs
    flags = Flags()
    note_source(flags, notebook, specs, [Verdict(passed, "passed", 3.0, 3.0, None, "")])
    return flags


BANNED = {
    "plain": "def softmax(s, dim=-1):\n    return torch.softmax(s, dim)",
    "method": "def softmax(s, dim=-1):\n    return s.softmax(dim)",
    "imported": "from torch.nn.functional import softmax as s1\n"
    "def softmax(s, dim=-1):\n    return s1(s, dim)",
    "aliased": "ready = torch.softmax\ndef softmax(s, dim=-1):\n    return ready(s, dim)",
    "helper": "def shares(s):\n    return s.log_softmax(-1).exp()\n"
    "def softmax(s, dim=-1):\n    return shares(s)",
    "by name": "def softmax(s, dim=-1):\n    return getattr(torch, 'softmax')(s, dim)",
    "lambda": "softmax = lambda s, dim=-1: F.softmax(s, dim)",
    "inner import": "def softmax(s, dim=-1):\n"
    "    from torch import softmax as it\n    return it(s, dim)",
}


@pytest.mark.parametrize("name", BANNED)
def test_a_banned_name_in_an_answer_that_passed(name: str) -> None:
    flags = flags_of_source("import torch", BANNED[name])
    assert [flag.kind for flag in flags] == ["banned-name"], flags
    assert "cell 2 names" in flags[0].evidence


@pytest.mark.parametrize(
    "cell",
    [
        "def softmax(s, dim=-1):\n    e = s.exp()\n    return e / e.sum(dim, keepdim=True)",
        'def softmax(s, dim=-1):\n    """Like torch.softmax."""\n    return s  # F.softmax',
        "def softmax(s, dim=-1):\n    return s\nprint(softmax(x) - torch.softmax(x, -1))",
        "def softmax(s):\n    return softmax(s)",
        "def attention(q):\n    return torch.softmax(q, -1)",
        "def softmax(:",
        "%matplotlib inline\n!ls\nsoftmax?",
    ],
)
def test_no_banned_name_in_an_answer(cell: str) -> None:
    assert flags_of_source(cell) == []


def test_a_ready_made_softmax_is_allowed_in_attention() -> None:
    code = "def attention(q, k, v):\n    return torch.softmax(q, -1)"
    assert flags_of_source(code, passed="attention") == []
    code = "def attention(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)"
    assert [flag.kind for flag in flags_of_source(code, passed="attention")] == ["banned-name"]


@pytest.mark.parametrize(
    "cell",
    [
        "import autograder_student as a\na.judge = None",
        "from autograder_student import Verdict",
        "check = lambda *given: None",
        "def check(*given):\n    pass",
        "check.channel = None",
        "torch.allclose = lambda *given: True",
        "torch.Tensor.__eq__ = lambda *given: True",
        "setattr(torch, 'equal', print)",
        "import os\nos.environ['AUTOGRADER_JUDGE_DESCRIPTOR']",
        "import sys\nsys._getframe(3).f_back",
        "import gc\ngc.get_objects()",
        "get_ipython().ast_transformers.append(None)",
        "del torch.softmax",
    ],
)
def test_a_reach_for_the_judge_is_seen(cell: str) -> None:
    assert {flag.kind for flag in flags_of_source(cell)} == {"judge-touched"}


@pytest.mark.parametrize(
    "cell",
    [
        "from autograder_student import load_check\ncheck = load_check('01_self_attention')",
        "torch.manual_seed(3)\ntorch.set_printoptions(precision=2)",
        "torch.backends.mkldnn.enabled = False",
        "check('softmax', softmax)\ncheck.summary()",
        "x = torch.ones(3)\nx[0] = 7\nx.grad = None",
        "class M(nn.Module):\n    def __init__(self):\n        self.weight = 3",
    ],
)
def test_ordinary_cells_reach_for_nothing(cell: str) -> None:
    assert flags_of_source(cell) == []


@pytest.mark.parametrize("topic", TOPICS)
def test_the_assignments_own_cells_are_no_students(topic: str, course: Course) -> None:
    specs = CaseSet.from_bytes(public_bytes(topic)).specs
    flags = Flags()
    passed = [Verdict(name, "passed", 1.0, 1.0, None, "") for name in specs]
    note_source(flags, read_notebook(course.release_notebook(topic)), specs, passed)
    assert flags == []
