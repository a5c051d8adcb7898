"""The command `autograder try`, from outside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOPIC = "01_self_attention"
EXERCISES = ["softmax", "attention_scores", "attention", "self_attention"]
KEYS = ["file", "topic", "exercise", "status", "points", "max_points", "diagnosis", "message"]

RIGHT = """
import math, os, sys, torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return torch.matmul(q, k.mT) / torch.tensor(float(q.shape[-1])).sqrt()


def attention(q, k, v):
    w = torch.softmax(attention_scores(q, k), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)
"""

EXITS = "\n\ndef attention(q, k, v):\n    os._exit(3)\n"


def run_try(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from autograder.cli import main; main()", "try"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def entries(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the order of their names; several of them do what should not reach the others."""
    folder = tmp_path_factory.mktemp("answers")
    files = {
        "a_globals.py": RIGHT
        + "\ntorch.set_default_dtype(torch.float64)"
        + "\ntorch.matmul = torch.softmax = torch.Tensor.exp = lambda *a, **n: 1 / 0"
        + "\nos.environ['ANSWERS'] = 'changed'\nos.chdir('/')\n",
        "b_environment.py": RIGHT + "\nassert 'ANSWERS' not in os.environ\n",
        "c_prints.py": RIGHT
        + "\nprint('loud')\nprint('loud', file=sys.stderr)\nos.write(1, b'loud\\n')"
        + "\nos.write(2, b'loud\\n')\nos.system('echo loud')\nprint('loud', file=sys.__stdout__)\n",
        "d_syntax.py": "def softmax(scores, dim=-1)\n    return scores\n",
        "e_import.py": RIGHT + "\nnumbers = [1, 2]\nthird = numbers[3]  # too far\n",
        "f_exits.py": RIGHT + EXITS,
        "g_leaves.py": RIGHT + "\nsys.exit('enough')\n",
        "h_dies.py": RIGHT + "\nos._exit(0)\n",
        "i_module_name.py": RIGHT + "\nif __name__ == '__main__':\n    raise SystemExit\n",
        "j_empty.py": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def result(folder: Path) -> subprocess.CompletedProcess[str]:
    files = sorted(path.name for path in folder.glob("*.py"))
    return run_try(TOPIC, *files, "--json", "--seed", "7", cwd=folder)


def of(result: subprocess.CompletedProcess[str], file: str) -> dict[str, dict[str, Any]]:
    return {entry["exercise"]: entry for entry in entries(result) if entry["file"] == file}


def test_one_object_a_line_in_the_order_of_files_and_exercises(
    result: subprocess.CompletedProcess[str], folder: Path
) -> None:
    found = entries(result)
    files = sorted(path.name for path in folder.glob("*.py"))
    pairs = [(entry["file"], entry["exercise"]) for entry in found]
    assert pairs == [(file, exercise) for file in files for exercise in EXERCISES]
    assert all(list(entry) == KEYS and entry["topic"] == TOPIC for entry in found)


def test_points_go_with_the_status(result: subprocess.CompletedProcess[str]) -> None:
    for entry in entries(result):
        assert entry["status"] in ("passed", "failed", "missing")
        assert (entry["diagnosis"] is None) == (entry["status"] == "passed")
        assert entry["points"] == (entry["max_points"] if entry["status"] == "passed" else 0)
        assert entry["max_points"] > 0
        assert entry["message"]


def test_nothing_else_is_written(result: subprocess.CompletedProcess[str]) -> None:
    assert "loud" not in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("file", ["b_environment.py", "c_prints.py", "i_module_name.py"])
def test_no_file_sees_what_another_does(
    result: subprocess.CompletedProcess[str], file: str
) -> None:
    assert {entry["status"] for entry in of(result, file).values()} == {"passed"}


def test_the_file_that_breaks_torch_breaks_it_for_itself(
    result: subprocess.CompletedProcess[str],
) -> None:
    found = of(result, "a_globals.py")["attention_scores"]
    assert found["status"] == "failed"
    assert "ZeroDivisionError" in found["message"]


@pytest.mark.parametrize(
    ("file", "texts"),
    [
        ("d_syntax.py", ["SyntaxError", "def softmax(scores, dim=-1)", "line 1"]),
        ("e_import.py", ["IndexError", "third = numbers[3]  # too far"]),
        ("g_leaves.py", ["SystemExit", "enough", "sys.exit('enough')"]),
        ("h_dies.py", ["ended"]),
    ],
)
def test_a_file_that_does_not_load_fails_in_every_exercise(
    result: subprocess.CompletedProcess[str], file: str, texts: list[str]
) -> None:
    found = of(result, file)
    assert {(entry["status"], entry["diagnosis"]) for entry in found.values()} == {
        ("failed", "raised")
    }
    for entry in found.values():
        assert all(text in entry["message"] for text in texts), entry["message"]
        assert "Traceback" not in entry["message"]


def test_an_exercise_that_ends_the_process_is_lost_alone(
    result: subprocess.CompletedProcess[str],
) -> None:
    found = of(result, "f_exits.py")
    assert found["softmax"]["status"] == found["attention_scores"]["status"] == "passed"
    assert (found["attention"]["status"], found["attention"]["diagnosis"]) == ("failed", "raised")
    # It calls `attention`, so it ends the process as well.
    assert found["self_attention"]["status"] == "failed"


def test_what_is_not_defined_is_missing(result: subprocess.CompletedProcess[str]) -> None:
    found = of(result, "j_empty.py")
    assert {entry["status"] for entry in found.values()} == {"missing"}


def test_verdicts_can_be_read_without_json(folder: Path) -> None:
    result = run_try(TOPIC, "f_exits.py", "--seed", "7", cwd=folder)
    assert result.returncode == 0
    assert "softmax" in result.stdout
    assert "✘ attention" in result.stdout
    assert result.stderr == ""


# ---- what cannot be judged


@pytest.fixture
def odd_files(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "latin.py").write_bytes("# Grüße\n".encode("latin-1"))
    (tmp_path / "folder.py").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["07_unknown", "right.py"], "07_unknown"),
        ([TOPIC, "missing.py"], "missing.py"),
        ([TOPIC, "folder.py"], "folder.py"),
        ([TOPIC, "latin.py"], "UTF-8"),
        ([TOPIC, "right.py", "missing.py"], "missing.py"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    odd_files: Path, arguments: list[str], text: str
) -> None:
    result = run_try(*arguments, "--json", cwd=odd_files)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert text in result.stderr


@pytest.mark.parametrize("arguments", [[], [TOPIC], [TOPIC, "right.py", "--sed", "3"]])
def test_wrong_usage_is_told(odd_files: Path, arguments: list[str]) -> None:
    result = run_try(*arguments, cwd=odd_files)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.strip()
