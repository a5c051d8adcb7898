"""A class is graded: by real kernels, to the points that class.toml promises, and again."""

import csv
import errno
import html
import json
import math
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from conftest import Command, GradedClass, write_notebook
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.api import Gradebook, MissingEntry

import autograder.grading.classrun as classrun
import autograder.nbgrader_hooks as hooks
import autograder.runner.notebook as running
import autograder.sample as sampling
from autograder.build.cases import build_cases
from autograder.build.release import build_release, read_notebook
from autograder.course import Course, Trouble, check_id, grade_id_of
from autograder.exercises import TOPICS
from autograder.grading.classrun import Result, grade_class
from autograder.grading.feedback import clean_markdown, write_feedback
from autograder.grading.gradebook import enter_assignment, explained_errors
from autograder.grading.hashes import Hashes
from autograder.grading.judging import public_bytes
from autograder.grading.records import Record, load_record
from autograder.grading.table import ClassProgress, print_table
from autograder.runner.notebook import NotebookRun, RunLimits, run_notebook
from autograder.runner.sandbox import Limits
from autograder.runner.session import Session
from autograder.sample import Sample, fill, load_samples, make_class, write_submission
from autograder.student.cases import CaseSet
from autograder.student.channel import Channel
from autograder.student.check import judge_answer, text_of
from autograder.student.verdicts import Verdict, with_faults_below

TOPIC = "01_self_attention"
EXERCISES = {exercise.id: float(exercise.points) for exercise in TOPICS[TOPIC].exercises}
TOTAL = 12.0  # with the written question
GRADED = ["alder", "birch", "cedar", "dogwood", "elder", "fir", "ginkgo", "hazel", "ironwood"]
GRADED += ["juniper", "katsura", "maple", "nutmeg", "oak", "pine", "quince"]


def rows_of(table: str) -> dict[str, tuple[str, str]]:
    """Points and reasons by student, from the printed table; reasons may be wrapped."""
    rows: dict[str, tuple[str, str]] = {}
    student = ""
    for line in table.splitlines():
        if not line.startswith("│"):
            continue
        name, _, points, reason = (part.strip() for part in line.strip("│").split("│"))
        if name:
            student, rows[name] = name, (points, reason)
        else:
            rows[student] = (rows[student][0], f"{rows[student][1]} {reason}")
    return rows


def scores_in(course: Course) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        return {item.student.id: item.score for item in gradebook.assignment_submissions(TOPIC)}


def rows_in_csv(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def dump(course: Course) -> list[str]:
    with sqlite3.connect(course.gradebook) as database:
        return list(database.iterdump())


def feedback_of(course: Course, student: str) -> Path:
    return course.into / "feedback" / student / TOPIC / f"{TOPIC}.html"


def record_of(course: Course, student: str) -> Record:
    record = load_record(course.records, TOPIC, student)
    assert record is not None, student
    return record


# ---- the sample class, graded once by the command


def test_the_class_ends_as_promised(graded_class: GradedClass) -> None:
    said = graded_class.said
    assert (said.returncode, said.stderr) == (0, "")
    rows = rows_of(said.stdout)
    assert set(rows) == {sample.student for sample in graded_class.samples}
    for sample in graded_class.samples:
        points, reason = rows[sample.student]
        if sample.ungradable:
            assert points == "—"
            assert reason.startswith("not graded: ")
            assert sample.ungradable in reason
        else:
            assert points.split(" ")[0] == f"{sample.points:g}/{TOTAL:g}", sample.student
            assert reason == "; ".join(sample.wrong), sample.student
            assert points.endswith(" (2 by hand)") == (sample.kind != "unfilled")
    assert "16 graded now, 0 unchanged, 2 not graded." in said.stdout


def test_gradebook_records_and_csv_agree_with_it(graded_class: GradedClass) -> None:
    course = graded_class.course
    wanted = {item.student: item.points for item in graded_class.samples if not item.ungradable}
    assert sorted(wanted) == GRADED
    assert scores_in(course) == wanted
    rows = rows_in_csv(course.into / "grades.csv")
    refused = {item.student: item.ungradable for item in graded_class.samples if item.ungradable}
    assert {name: float(row["score"]) for name, row in rows.items()} == {
        **wanted,
        **dict.fromkeys(refused, 0.0),
    }
    for name, row in rows.items():
        assert (refused[name] in row["not_graded"]) if name in refused else not row["not_graded"]
    assert {float(row["max_score"]) for row in rows.values()} == {TOTAL}
    assert all(row["duedate"].startswith("2026-10-12 21:59") for row in rows.values())
    for sample in graded_class.samples:
        if not sample.ungradable:
            points = record_of(course, sample.student).points
            assert list(points) == list(EXERCISES)
            assert sum(points.values()) == sample.points


def test_feedback_holds_the_judges_words(graded_class: GradedClass) -> None:
    course = graded_class.course
    pages = sorted(path.parts[-3] for path in course.into.glob("feedback/*/*/*.html"))
    assert pages == GRADED
    for student in GRADED:
        page = html.unescape(feedback_of(course, student).read_text(encoding="utf-8"))
        assert page.count("On fresh cases, which is what counts:") == len(EXERCISES)
        assert page.count("On the public cases, as the notebook shows it:") == len(EXERCISES)
        assert f"<p>{student}" in page
        for verdict in record_of(course, student).verdicts:
            for line in text_of(verdict).splitlines():
                assert line in page, (student, verdict.exercise)
            name = f" ({verdict.diagnosis})" if verdict.diagnosis else ""
            word = "✔ passed" if verdict.passed else f"✘ {verdict.status}{name}"
            line = page[page.index(f'href="#{check_id(verdict.exercise)}"') :]
            assert f"<td>{word}</td>" in line[: line.index("</tr>")]


def test_feedback_says_who_how_late_and_what_was_put_right(graded_class: GradedClass) -> None:
    def head_of(student: str) -> str:
        page = feedback_of(graded_class.course, student).read_text(encoding="utf-8")
        return html.unescape(page[: page.index("<table>")])

    assert "Handed in late, by 2:10:00." in head_of("oak")
    assert "late" not in head_of("alder")
    assert "cell check_attention was missing: it was put back." in head_of("maple")
    assert "10 of 12 points; 2 wait for a person" in head_of("alder")
    assert "wait" not in head_of("ironwood")


def test_what_cannot_be_graded_is_counted_when_records_are_verified(
    graded_class: GradedClass, autograder: Command
) -> None:
    course = graded_class.course
    folders = ("--submitted", course.submitted, "--into", course.into)
    said = autograder("verify", TOPIC, *folders, cwd=course.root)
    assert said.stdout.splitlines() == [
        "16 of 16 submissions verified: their scores follow from their records.",
        "2 more could not be graded: grades.csv says why.",
    ]


def test_feedback_holds_no_secret(graded_class: GradedClass) -> None:
    course = graded_class.course
    reference = (course.root / "solutions" / "self_attention.py").read_text().splitlines()
    secrets = [line.strip() for line in reference if line.startswith("    ") and "(" in line]
    for student in ("cedar", "ginkgo"):
        page = html.unescape(feedback_of(course, student).read_text(encoding="utf-8"))
        page = re.sub(r"base64,[^\"]+", "", page)
        record = record_of(course, student)
        own = "\n".join(cell.source for cell in record.executed.cells)
        assert not [line for line in secrets if line in page and line not in own]
        assert str(record.seed) not in page
        for cases in build_cases(TOPICS[TOPIC], record.seed).cases.values():
            for case in cases:
                for value in case.question.arguments.values():
                    if isinstance(value, torch.Tensor) and value.numel() > 2:
                        entries = ", ".join(f"{entry:.2f}" for entry in value.flatten()[:3])
                        assert entries not in page


def test_a_record_says_all_that_judging_again_needs(graded_class: GradedClass) -> None:
    record = record_of(graded_class.course, "cedar")
    hashes = record.hashes
    for given in (hashes.notebook, hashes.files, hashes.run, hashes.judge, record.cases_hash):
        assert len(given) == 64
    seeds = {record_of(graded_class.course, student).seed for student in GRADED}
    assert len(seeds) == 1, "a class has the same cases, drawn for this run"
    cases = build_cases(TOPICS[TOPIC], record.seed)
    assert cases.to_bytes() == build_cases(TOPICS[TOPIC], record.seed).to_bytes()
    answers: dict[str, Any] = {}
    code = graded_class.course.root / "examples" / TOPIC / "unscaled.py"
    exec(compile(code.read_text(), str(code), "exec"), answers)
    verdicts = [judge_answer(cases, name, answers[name]) for name in EXERCISES]
    builds_on = {name: spec.builds_on for name, spec in cases.specs.items()}
    assert with_faults_below(verdicts, builds_on) == record.verdicts


def test_text_on_stderr_costs_nothing(graded_class: GradedClass) -> None:
    record = record_of(graded_class.course, "pine")
    streams = [o for cell in record.executed.cells for o in cell.get("outputs", [])]
    assert any(o.get("name") == "stderr" and "loaded on" in o.text for o in streams)
    assert all(verdict.passed for verdict in record.verdicts)


def test_an_endless_loop_costs_its_exercise_alone(graded_class: GradedClass) -> None:
    points = record_of(graded_class.course, "juniper").points
    assert points == {**EXERCISES, "self_attention": 0.0}


def test_an_unfinished_run_leaves_no_half_file(graded_class: GradedClass) -> None:
    assert not list(graded_class.course.into.rglob("*.partial"))
    assert not list(graded_class.course.into.glob(".probe*"))


# ---- graded again


def grade(autograder: Command, course: Course, *options: str) -> subprocess.CompletedProcess:
    folders = ("--submitted", course.submitted, "--into", course.into)
    return autograder("grade", *folders, *options, cwd=course.root)


def test_a_second_run_changes_nothing(
    graded_class: GradedClass, autograder: Command, tmp_path: Path
) -> None:
    course = graded_class.copy(tmp_path, "alder", "cedar", "larch")
    before = dump(course)
    files = {path: path.stat().st_mtime_ns for path in course.into.rglob("*") if path.is_file()}
    said = grade(autograder, course, "--strict")
    assert (said.returncode, said.stderr) == (1, ""), "larch cannot be graded"
    assert "0 graded now, 2 unchanged, 1 not graded." in said.stdout
    assert rows_of(said.stdout)["cedar"] == rows_of(graded_class.said.stdout)["cedar"]
    assert dump(course) == before
    written = [path.name for path, time in files.items() if path.stat().st_mtime_ns != time]
    rewritten = {"grades.csv", "gradebook.db", f"{TOPIC}.refused.json"}  # there were two before
    assert set(written) <= rewritten


def test_what_changed_is_graded_again_and_that_alone(
    graded_class: GradedClass, autograder: Command, tmp_path: Path
) -> None:
    course = graded_class.copy(tmp_path, "alder", "birch", "cedar", "dogwood")
    notebooks = {
        student: course.submitted / student / TOPIC / f"{TOPIC}.ipynb"
        for student in ("alder", "birch", "cedar", "dogwood")
    }
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        for student, points in {"birch": 1.5, "cedar": 1.0}.items():
            written = gradebook.find_grade("written_scale", TOPIC, TOPIC, student)
            written.manual_score, written.needs_manual_grade = points, False
        gradebook.db.commit()
    shutil.copy(notebooks["dogwood"], notebooks["cedar"])  # 3 points before, 7 after
    notebooks["alder"].write_text("lost")
    records = {name: record_of(course, name).seed for name in notebooks}

    said = grade(autograder, course)
    assert (said.returncode, said.stderr) == (0, "")
    assert "1 graded now, 2 unchanged, 1 not graded." in said.stdout
    assert load_record(course.records, TOPIC, "alder") is None
    del records["alder"]
    again = {name for name, seed in records.items() if record_of(course, name).seed != seed}
    assert again == {"cedar"}

    scores, rows = scores_in(course), rows_in_csv(course.into / "grades.csv")
    assert "alder" not in scores, "what can no longer be graded has no grade"
    assert float(rows["alder"]["score"]) == 0.0
    assert not feedback_of(course, "alder").exists()
    assert scores["birch"] == float(rows["birch"]["score"]) == 11.5
    assert rows["birch"]["needs_manual_grade"] == ""
    assert rows_of(said.stdout)["birch"][0] == "11.5/12"
    assert scores["cedar"] == float(rows["cedar"]["score"]) == 8.0, "7 and the 1 given by hand"
    assert rows["cedar"]["needs_manual_grade"] == "yes", "a person looks at the new answer"
    assert "softmax-over-queries" in feedback_of(course, "cedar").read_text(encoding="utf-8")


def in_process(course: Course) -> dict[str, Result]:
    with ClassProgress() as progress:
        return {item.student: item for item in grade_class(course, [TOPIC], progress)}


def no_new_record(*given: object) -> Record:
    raise AssertionError("a notebook was run that need not be")


def test_a_run_that_was_killed_before_the_gradebook_is_finished(
    graded_class: GradedClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = graded_class.copy(tmp_path, "birch", "dogwood")
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        grade = gradebook.find_grade("check_softmax", TOPIC, TOPIC, "birch")
        grade.auto_score = 1.0  # of an earlier version
        gradebook.db.commit()
    os.utime(course.records / TOPIC / "birch.json")
    monkeypatch.setattr(classrun, "make_record", no_new_record)
    monkeypatch.setattr(hooks, "make_record", no_new_record)
    page = feedback_of(course, "dogwood").stat().st_mtime_ns
    results = in_process(course)
    assert {name: result.points for name, result in results.items()} == {"birch": 10, "dogwood": 7}
    assert scores_in(course)["birch"] == 10
    assert feedback_of(course, "dogwood").stat().st_mtime_ns == page


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, too small for everything."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_with_space_again_a_full_disk_has_cost_nothing(
    graded_class: GradedClass, autograder: Command, small_disk: Path, tmp_path: Path
) -> None:
    course = graded_class.copy(tmp_path, "birch", "cedar", "dogwood")
    course = replace(course, into=small_disk / "results")
    (course.records / TOPIC).mkdir(parents=True)
    for student in ("birch", "cedar", "dogwood"):
        kept = tmp_path / "results" / "verdicts" / TOPIC / f"{student}.json"
        shutil.copy(kept, course.records / TOPIC)
    seeds = [record_of(course, student).seed for student in ("birch", "cedar", "dogwood")]
    full = grade(autograder, course)
    assert full.returncode == 1
    assert full.stderr.startswith(f"autograder: No space is left in {course.into}.")
    assert len(full.stderr.splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    again = grade(autograder, course)
    assert (again.returncode, again.stderr) == (0, "")
    assert scores_in(course) == {"birch": 10, "cedar": 3, "dogwood": 7}
    assert sorted(rows_in_csv(course.into / "grades.csv")) == ["birch", "cedar", "dogwood"]
    assert [record_of(course, name).seed for name in ("birch", "cedar", "dogwood")] == seeds


# ---- a class whose notebooks are not run: what does not depend on kernels


def canned(
    student: str,
    topic: str,
    notebook: NotebookNode,
    files: dict[str, bytes],
    hashes: Hashes,
    *given: object,
    **named: object,
) -> Record:
    """A record in which everything passed."""
    verdicts = [
        Verdict(name, "passed", most, most, None, "3 of 3") for name, most in EXERCISES.items()
    ]
    return Record(student, topic, hashes, 7, verdicts, notebook)


@pytest.fixture
def canned_class(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """An empty class, in which a notebook that is graded gets full points without being run."""
    monkeypatch.setattr(classrun, "make_record", canned)
    monkeypatch.setattr(hooks, "make_record", no_new_record)
    return Course.at(course.root, tmp_path / "submitted", tmp_path / "results")


def submit(course: Course, student: str, notebook: NotebookNode | str) -> None:
    path = course.submitted / student / TOPIC / f"{TOPIC}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))


def test_odd_notebooks_are_run_once_and_cost_the_class_nothing(
    canned_class: Course, release: NotebookNode
) -> None:
    old = nbformat.convert(nbformat.from_dict(release), 3)
    submit(canned_class, "format-3", old)
    release = read_notebook(canned_class.release_notebook(TOPIC))
    without_ids = nbformat.from_dict(json.loads(json.dumps(release)))
    without_ids.nbformat_minor = 2
    for cell in without_ids.cells:
        del cell["id"]
    submit(canned_class, "format-4-2", without_ids)
    empty = new_notebook()
    submit(canned_class, "no-cells", empty)
    odd = nbformat.from_dict(json.loads(json.dumps(release)))
    for number, cell in enumerate(odd.cells):
        cell.metadata["nbgrader"] = [None, {}, "x", 3, {"grade_id": 5}][number % 5]
        cell["id"] = "same"
        if cell.cell_type == "code":
            cell.outputs = [new_output("stream", text="<script>alert(1)</script>")]
    submit(canned_class, "odd-metadata", odd)
    submit(canned_class, "name with spaces", release)
    submit(canned_class, "x[1]", release)
    submit(canned_class, "a+b", release)
    submit(canned_class, "not-json", "{")
    results = in_process(canned_class)
    ungradable = {name for name, result in results.items() if result.ungradable}
    assert ungradable == {"not-json", "x[1]"}
    assert "or one of * ? [ ]" in results["x[1]"].ungradable
    graded = {name: result.points for name, result in results.items() if result.graded}
    assert not [result.broken for result in results.values() if result.broken]
    assert set(graded) == {
        "format-3",
        "format-4-2",
        "no-cells",
        "odd-metadata",
        "name with spaces",
        "a+b",
    }
    assert set(graded.values()) == {10.0}
    assert scores_in(canned_class) == graded


def test_an_answer_that_breaks_grading_is_named_and_alone(
    canned_class: Course, release: NotebookNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_for_birch(student: str, *given: Any, **named: Any) -> Record:
        if student == "birch":
            raise RuntimeError("the kernel would not start")
        return canned(student, *given)

    monkeypatch.setattr(classrun, "make_record", breaks_for_birch)
    for student in ("alder", "birch", "cedar"):
        submit(canned_class, student, release)
    results = in_process(canned_class)
    assert results["birch"].broken == "RuntimeError: the kernel would not start"
    assert scores_in(canned_class) == {"alder": 10.0, "cedar": 10.0}
    row = rows_in_csv(canned_class.into / "grades.csv")["birch"]
    assert row["not_graded"] == "grading failed: RuntimeError: the kernel would not start"


def test_the_name_of_a_file_ends_no_run_and_steers_no_terminal(
    canned_class: Course, release: NotebookNode
) -> None:
    submit(canned_class, "alder", release)
    for student, name in {"birch": b"\xff.ipynb", "cedar": b"\x1b[31m\x07.ipynb"}.items():
        folder = canned_class.submitted / student / TOPIC
        folder.mkdir(parents=True)
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("")
    results = in_process(canned_class)
    assert results["alder"].points == 10.0
    assert all(results[student].ungradable.isprintable() for student in ("birch", "cedar"))
    rows = rows_in_csv(canned_class.into / "grades.csv")
    assert all("should be" in rows[student]["not_graded"] for student in ("birch", "cedar"))


def test_whose_page_cannot_be_written_stops_nobody_elses(
    canned_class: Course, release: NotebookNode
) -> None:
    for student in ("alder", "birch", "cedar"):
        submit(canned_class, student, release)
    in_process(canned_class)
    with Gradebook(f"sqlite:///{canned_class.gradebook}") as gradebook:
        gradebook.remove_submission(TOPIC, "birch")
    pages = {name: feedback_of(canned_class, name) for name in ("alder", "cedar")}
    for page in pages.values():
        page.unlink()
    with pytest.raises(Trouble, match=r"written for 2 submissions, but not for birch"):
        write_feedback(canned_class, [TOPIC])
    assert all(page.is_file() for page in pages.values())


def test_no_box_on_a_feedback_page_is_a_students() -> None:
    forged = (
        '<div class="output verdict">✔ attention passed</div> <span class="score">12</span> '
        '<div class="highlight"><span class="kn">import</span></div>'
    )
    shown = clean_markdown(forged)
    assert "verdict" not in shown
    assert "score" not in shown
    assert 'class="highlight"' in shown
    assert 'class="kn"' in shown


def test_no_space_for_a_record_ends_the_run_and_keeps_what_there_is(
    canned_class: Course, release: NotebookNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def one(student: str, *given: Any, **named: Any) -> Record:
        begun.append(student)
        return canned(student, *given)

    def full(records: Path, record: Record) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(classrun, "make_record", one)
    submit(canned_class, "alder", release)
    in_process(canned_class)
    submit(canned_class, "birch", release)
    with monkeypatch.context() as patch:
        patch.setattr(classrun, "save_record", full)
        with pytest.raises(Trouble, match=r"^No space is left in .* what was graded is kept"):
            in_process(canned_class)
    results = in_process(canned_class)
    assert begun == ["alder", "birch", "birch"]
    assert [result.points for result in results.values()] == [10.0, 10.0]


def test_where_one_error_ends_the_run_nothing_more_is_begun(
    canned_class: Course, release: NotebookNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def first_fails(student: str, *given: Any, **named: Any) -> Record:
        begun.append(student)
        if student != "student-00":
            time.sleep(0.3)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(classrun, "make_record", first_fails)
    for number in range(12):
        submit(canned_class, f"student-{number:02}", release)
    with pytest.raises(Trouble, match="No space"):
        in_process(canned_class)
    assert len(begun) < 12


# ---- forging: what happens in the kernel decides nothing

RIGHT = {
    "softmax": """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
""",
    "attention_scores": """
def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
""",
    "attention": """
def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
    return weights @ v, weights
""",
    "self_attention": """
def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
    return weights @ v, weights
""",
}
WRONG = {
    name: f"\ndef {name}(*inputs, **named):\n    return torch.zeros(3)\n" for name in EXERCISES
}


@cache
def secret_cases() -> CaseSet:
    return build_cases(TOPICS[TOPIC], torch.seed() % 2**48)


def run_cells(
    answers: dict[str, str],
    before: str = "",
    cell_timeout: float = 90,
    exercise_timeout: float = math.inf,
    after: tuple[str, ...] = (),
) -> NotebookRun:
    """A notebook without figures: the setup, a cell of the student's, answers and their checks."""
    setup = "import torch\nfrom autograder_student import load_check\ncheck = load_check({!r})"
    cells = [new_code_cell(setup.format(TOPIC)), new_code_cell(textwrap.dedent(before))]
    for name, code in answers.items():
        cells.append(new_code_cell(code))
        check = new_code_cell(f'check("{name}", {name})')
        check.metadata["nbgrader"] = {"grade_id": check_id(name), "grade": True, "solution": False}
        cells.append(check)
    notebook = new_notebook(cells=[*cells, *map(new_code_cell, after)])
    limits = RunLimits(cell=cell_timeout, exercise=exercise_timeout, kernel=Limits())
    return run_notebook(notebook, secret_cases(), public_bytes(TOPIC), limits)


def points_of_run(run: NotebookRun) -> dict[str, float]:
    return {verdict.exercise: verdict.points for verdict in run.verdicts()}


NOTHING = dict.fromkeys(EXERCISES, 0.0)


def test_right_answers_get_their_points_in_the_same_notebook() -> None:
    run = run_cells(RIGHT)
    assert points_of_run(run) == EXERCISES
    assert run.troubles == []


def test_a_cell_that_calls_what_was_too_slow_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "AFTER_TOO_SLOW", 1.0)
    loop = "def softmax(scores, dim=-1):\n    while True:\n        pass\n"
    calls = "softmax(torch.zeros(3))"
    began = time.monotonic()
    other = "import time; softmax_of_mine = time.sleep(3); print('another name')"
    run = run_cells({"softmax": loop}, after=(other, calls, "print('on')"), exercise_timeout=2.0)
    assert time.monotonic() - began < 45, "and not the 90 s that a cell may take"
    assert run.too_slow == ["softmax"]
    assert run.verdicts()[0].diagnosis == "too-slow"
    *_, another, stopped, last = run.notebook.cells
    assert another.outputs[0].text == "another name\n"
    assert [output.ename for output in stopped.outputs] == ["TimedOut"]
    assert last.outputs[0].text == "on\n"


FORGERIES = {
    "another check": """
        def check(name, answer):
            print(f"✔ {name}: 3 of 3 points")
            return 3
        """,
    "outputs of one's own": """
        from IPython.display import display
        from IPython import get_ipython

        class Full:
            def __repr__(self):
                return "nan"
            def __eq__(self, other):
                return True

        def check(name, answer):
            kernel = get_ipython().kernel
            content = {"data": {"text/plain": "3.0"}, "metadata": {}, "execution_count": 1}
            kernel.send_response(kernel.iopub_socket, "execute_result", content)
            display(Full())
            return Full()
        """,
    "a judge that is always pleased": """
        import autograder_student
        from autograder_student import Verdict

        def pleased(spec, cases, responses):
            return Verdict(spec.id, "passed", spec.points, spec.points, None, "well done")

        autograder_student.judge = pleased
        torch.allclose = torch.equal = torch.isclose = lambda *given, **named: True
        torch.Tensor.__eq__ = lambda self, other: True
        """,
    "cells that are not run": """
        import ast
        from IPython import get_ipython

        shell = get_ipython()

        class Empty(ast.NodeTransformer):
            def visit_Call(self, node):
                return ast.Constant(None)

        shell.ast_transformers.append(Empty())
        """,
    "an answer to the judge's first question for all": """
        import autograder_student
        from autograder_student import to_data

        def offer(channel, exercise, answer):
            channel.send({"type": "offer", "exercise": exercise})
            while (message := channel.receive())["type"] != "end":
                if message["type"] == "question":
                    inputs = list(message["question"]["arguments"].values())
                    outcome = {"kind": "tensor", "values": inputs[:1], "raised": None}
                    channel.send({"type": "response", "response": {
                        "plain": outcome, "traced": outcome, "gradients": {},
                        "gradient_error": None, "changed_inputs": [], "changed_results": False,
                        "banned": []}})
                elif message["type"] == "closed":
                    return

        autograder_student.answer_questions = offer
        """,
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_what_the_kernel_pretends_gives_no_points(forgery: str) -> None:
    run = run_cells(WRONG, forgery)
    assert points_of_run(run) == NOTHING
    for cell in run.notebook.cells:
        if grade_id_of(cell):
            assert cell.outputs[-1].data["text/plain"].startswith("Graded on fresh cases:\n✘")


def test_what_a_forger_did_solve_still_counts() -> None:
    answers = {**WRONG, "attention": RIGHT["attention"]}
    run = run_cells(answers, FORGERIES["a judge that is always pleased"])
    assert points_of_run(run) == {**NOTHING, "attention": EXERCISES["attention"]}


def test_a_shell_that_runs_nothing_more_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.runner.notebook.GRACE", -4.0)  # gives up on a check at once
    monkeypatch.setattr("autograder.runner.notebook.MOST_KERNELS", 1)
    run = run_cells(
        {"softmax": RIGHT["softmax"]},
        """
        from IPython import get_ipython

        async def run_cell_async(*given, **named):
            return None

        get_ipython().run_cell_async = run_cell_async
        """,
        cell_timeout=8,
    )
    assert points_of_run(run) == NOTHING


def test_an_exercise_is_answered_in_its_own_check_only() -> None:
    early = RIGHT["softmax"] + textwrap.dedent("""
        from autograder_student import answer_questions
        answer_questions(check.channel, "softmax", softmax)
        """)
    run = run_cells({"softmax": WRONG["softmax"]}, early)
    assert points_of_run(run) == NOTHING
    run = run_cells({"softmax": RIGHT["softmax"] + "\ncheck('softmax', softmax)"})
    assert points_of_run(run) == {**NOTHING, "softmax": 3.0}


def test_the_first_answer_binds() -> None:
    shifting = """
calls = 0
def softmax(scores, dim=-1):
    global calls
    calls += 1
    return scores
"""
    run = run_cells(
        {"softmax": shifting},
        """
        import autograder_student
        offer = autograder_student.answer_questions

        def twice(channel, exercise, answer):
            offer(channel, exercise, answer)
            offer(channel, exercise, lambda scores, dim=-1: torch.softmax(scores, dim))

        autograder_student.answer_questions = twice
        """,
    )
    assert points_of_run(run) == NOTHING


# ---- kernels that die, hang, or speak nonsense cost what they were asked then

EXITS = "\n    import os\n    os._exit(0)\n"
CRASHES = "\n    import ctypes\n    ctypes.string_at(0)\n"


def test_a_kernel_that_ends_in_one_exercise_costs_that_one() -> None:
    answers = dict(RIGHT)
    answers["softmax"] = "def softmax(scores, dim=-1):" + EXITS
    answers["attention"] = "def attention(q, k, v):" + CRASHES
    run = run_cells(answers)
    assert points_of_run(run) == {**EXERCISES, "softmax": 0.0, "attention": 0.0}
    assert run.troubles == ["the kernel ended in cell 4", "the kernel ended in cell 8"]
    for verdict in run.verdicts():
        if not verdict.passed:
            assert verdict.diagnosis == "raised"
            assert "ended before it gave an answer" in verdict.message


def test_a_cell_of_ones_own_that_ends_the_kernel_costs_no_exercise() -> None:
    run = run_cells(RIGHT, "import os\nos._exit(1)")
    assert points_of_run(run) == EXERCISES
    assert run.troubles == ["the kernel ended in cell 2"]


def test_a_cell_of_ones_own_that_never_ends_costs_no_exercise() -> None:
    run = run_cells(RIGHT, "while True: pass", cell_timeout=8)
    assert points_of_run(run) == EXERCISES
    assert "took too long" in str(run.notebook.cells[1].outputs)


NONSENSE = {
    "noise": "b'\\xff' * 4096",
    "a huge announcement": "(2**62).to_bytes(8, 'little')",
    "no dict": "framed(pack([1, 2]))",
    "no type": "framed(pack({'exercise': 'softmax'}))",
    "an unknown type": "framed(pack({'type': 'verdict', 'points': 3}))",
    "a response too early": "framed(pack({'type': 'response', 'response': {}})) * 50",
    "an offer of a list": "framed(pack({'type': 'offer', 'exercise': ['softmax']})) * 500",
    "deep": "framed(deep())",
    "an odd shape": "framed(shaped([2**62, 2**62, 0]))",
    "a negative shape": "framed(shaped([-1]))",
}
TOOLS = """
import json, os, socket
try:
    from autograder_student import DESCRIPTOR_VARIABLE, pack
except ImportError:
    from autograder.student.channel import DESCRIPTOR_VARIABLE
    from autograder.student.tensors import pack

def framed(data):
    return len(data).to_bytes(8, "little") + data

def header(text):
    return len(text).to_bytes(8, "little") + text

def deep():
    nested = "[" * 100_000 + "]" * 100_000
    return header(json.dumps({"__metadata__": {"structure": nested}}).encode())

def shaped(shape):
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    structure = json.dumps({"type": "offer", "exercise": {"$tensor": 0}})
    return header(json.dumps({"__metadata__": {"structure": structure}, "0": entry}).encode())

line = socket.socket(fileno=os.dup(int(os.environ[DESCRIPTOR_VARIABLE])))
"""


@pytest.mark.parametrize("message", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_to_the_judge_ends_the_session_and_gives_nothing(message: str) -> None:
    assert points_of_run(in_a_session(message)) == NOTHING


def in_a_session(message: str) -> NotebookRun:
    """The judge's side alone, with `message` on the line: no kernel is needed for that."""
    cases = secret_cases()
    run = NotebookRun(new_notebook(), cases, public_bytes(TOPIC), RunLimits(), {})
    ours, theirs = socket.socketpair()
    session = Session(Channel(ours, 5), cases, public_bytes(TOPIC), responses=run.responses)
    session.open("softmax")
    tools: dict[str, Any] = {}
    exec(TOOLS.rpartition("\n\n")[0], tools)
    theirs.sendall(eval(message, tools))
    theirs.shutdown(socket.SHUT_WR)
    session.serve()
    theirs.close()
    return run


def test_a_notebook_that_floods_the_judge_costs_only_itself() -> None:
    flood = TOOLS + textwrap.dedent("""
        public = framed(pack({"type": "public"}))
        line.setblocking(False)
        try:
            for _ in range(200):
                line.send(public)
        except OSError:
            pass
        line.setblocking(True)
        line.sendall(b"\\xff" * 100_000)
        """)
    answers = {"softmax": RIGHT["softmax"], "attention": flood + RIGHT["attention"]}
    run = run_cells(answers, cell_timeout=8)
    assert points_of_run(run) == {**NOTHING, "softmax": 3.0}


# ---- plain nbgrader


def test_plain_nbgrader_gives_the_same_scores(
    own_course: Course, python: Command, tmp_path: Path
) -> None:
    samples = [
        item for item in samples_of(own_course) if item.student in ("cedar", "ironwood", "maple")
    ]
    for sample in samples:
        write_submission(own_course.root, own_course.submitted, sample)
    build_release(own_course, TOPIC, own_course.release_notebook(TOPIC).parent)
    for options in (["--student", "cedar"], []):
        said = python("-m", "nbgrader", "autograde", TOPIC, *options, cwd=own_course.root)
        assert said.returncode == 0, said.stderr
        students = scores_in(own_course)
        assert set(students) == ({"cedar"} if options else {"cedar", "ironwood", "maple"})
    assert students == {sample.student: sample.points for sample in samples}
    said = python("-m", "nbgrader", "export", "--to", tmp_path / "out.csv", cwd=own_course.root)
    assert said.returncode == 0, said.stderr
    rows = rows_in_csv(tmp_path / "out.csv")
    assert {name: float(row["score"]) for name, row in rows.items()} == students


# ---- what a person gets wrong is told in a sentence


def assert_told(result: subprocess.CompletedProcess, status: int, *parts: str) -> None:
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert result.stderr.startswith("autograder: ")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for part in parts:
        assert part in result.stderr


def one_submission(course: Course, folder: Path) -> Path:
    submit(replace(course, submitted=folder / "submitted"), "alder", "{")
    return folder / "submitted"


@pytest.mark.parametrize("command", [["grade"], ["release"], ["feedback"], ["try"]])
def test_an_unknown_topic(command: list[str], autograder: Command, course: Course) -> None:
    given = [*command, "07_nothing"] + (["file.py"] if command == ["try"] else [])
    assert_told(autograder(*given, cwd=course.root), 2, "'07_nothing'", TOPIC)


def test_nothing_was_submitted(autograder: Command, course: Course, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, reason in {"empty": "nothing to grade", "missing": "There is no folder"}.items():
        folder = tmp_path / name
        said = autograder(
            "grade", "--submitted", folder, "--into", tmp_path / "results", cwd=course.root
        )
        assert_told(said, 1, reason, str(folder), f"STUDENT/{TOPIC}/{TOPIC}.ipynb")
    assert not (tmp_path / "results").exists()


def test_outside_of_a_course(autograder: Command, tmp_path: Path) -> None:
    for command in (["grade"], ["release"], ["lab"]):
        assert_told(autograder(*command, cwd=tmp_path), 1, "no course", "nbgrader_config.py")


def a_file(place: Path) -> Path:
    place.write_text("mine")
    return place


def below_a_file(place: Path) -> Path:
    place.write_text("mine")
    return place / "results"


def no_database(place: Path) -> Path:
    place.mkdir()
    (place / "gradebook.db").write_text("my notes on grades, not a database at all" * 100)
    return place


def a_damaged_database(place: Path) -> Path:
    place.mkdir()
    (place / "gradebook.db").write_bytes(b"SQLite format 3\0" + b"\x01" * 8000)
    return place


def a_folder_for_a_gradebook(place: Path) -> Path:
    (place / "gradebook.db").mkdir(parents=True)
    return place


@pytest.mark.parametrize(
    ("put", "parts"),
    [
        (a_file, ["Cannot write to", "results", "--into"]),
        (below_a_file, ["Cannot write to", "results", "--into"]),
        (no_database, ["gradebook.db is no gradebook", "move it away"]),
        (a_damaged_database, ["gradebook.db is not a gradebook, or damaged"]),
        (a_folder_for_a_gradebook, ["Cannot write to", "gradebook.db: Is a directory"]),
    ],
)
def test_a_place_that_results_cannot_go_to(
    put: Any, parts: list[str], autograder: Command, course: Course, tmp_path: Path
) -> None:
    submitted = one_submission(course, tmp_path)
    into = put(tmp_path / "results")
    said = autograder("grade", "--submitted", submitted, "--into", into, cwd=course.root)
    assert_told(said, 1, *parts)
    for path in (tmp_path / "results", tmp_path / "results" / "gradebook.db"):
        if path.is_file():
            assert path.read_bytes()[:4] in (b"mine", b"my n", b"SQLi"), "it is left as it was"


def test_a_release_that_is_older_than_its_source(
    autograder: Command, own_course: Course, tmp_path: Path
) -> None:
    source = read_notebook(own_course.source_notebook(TOPIC))
    source.cells[0].source += "\n\nA word more."
    write_notebook(own_course.source_notebook(TOPIC), source)
    submitted = one_submission(own_course, tmp_path)
    said = autograder(
        "grade", "--submitted", submitted, "--into", tmp_path / "out", cwd=own_course.root
    )
    assert_told(said, 1, f"release/{TOPIC} does not fit source/{TOPIC}", "make release")


def test_a_second_notebook_in_a_source_is_named(own_course: Course) -> None:
    source = own_course.source_notebook(TOPIC)
    shutil.copy(source, source.with_name("extra.ipynb"))
    with pytest.raises(Trouble, match=f"source/{TOPIC} holds 2 notebooks, .* move all but {TOPIC}"):
        enter_assignment(own_course, TOPIC)


def test_a_graded_cell_that_came_later_is_explained(course: Course) -> None:
    said = f"nbgrader could not generate {TOPIC}: Cannot add or remove cells"
    with (
        pytest.raises(Trouble, match=r"gained or lost a graded cell.* move .*gradebook\.db away"),
        explained_errors(course),
    ):
        raise Trouble(said)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("c.GradingOptions.workers = 'four'", ["nbgrader_config.py", "workers"]),
        ("c.GradingOptions.workers = ", ["nbgrader_config.py", "SyntaxError"]),
        ("c.GradingOptions.due_dates = {'01_self_attention': 'soon'}", ["'soon'", "due date"]),
    ],
)
def test_a_mistake_in_the_configuration(
    line: str, parts: list[str], autograder: Command, own_course: Course, tmp_path: Path
) -> None:
    with (own_course.root / "nbgrader_config.py").open("a") as file:
        file.write(line + "\n")
    said = autograder("sample", "--into", tmp_path / "submitted", cwd=own_course.root)
    assert_told(said, 1, *parts)


def test_feedback_before_grading(autograder: Command, course: Course, tmp_path: Path) -> None:
    said = autograder("feedback", "--into", tmp_path / "nowhere", cwd=course.root)
    assert_told(said, 1, "Nothing was graded", "autograder grade", "--into sample")


# ---- the table, the progress, the sample's sizes


@pytest.fixture
def results() -> list[Result]:
    return [
        Result("alder", TOPIC, 10, 12, by_hand=2),
        Result("birch", TOPIC, 2.5, 12, notes=["softmax: unstable", "late by 2:10:00"]),
        Result("cedar", TOPIC, ungradable="it is not JSON [/bold]"),
        Result("dogwood", TOPIC, broken="OSError: no"),
        Result("elder", TOPIC, 12, 12, fresh=False),
    ]


def test_the_table_says_how_each_ended(
    results: list[Result], course: Course, capsys: pytest.CaptureFixture
) -> None:
    print_table(results, course)
    text = capsys.readouterr().out
    assert rows_of(text) == {
        "alder": ("10/12 (2 by hand)", ""),
        "birch": ("2.5/12", "softmax: unstable; late by 2:10:00"),
        "cedar": ("—", "not graded: it is not JSON [/bold]"),
        "dogwood": ("—", "grading failed: OSError: no"),
        "elder": ("12/12", ""),
    }
    assert "2 graded now, 1 unchanged, 2 not graded. gradebook.db" in text
    where, waiting = text.splitlines()[-2:]
    assert str(course.into) in where
    assert waiting.startswith("(2 by hand)")


def test_progress_is_a_line_for_each_that_was_graded_now(
    results: list[Result], capsys: pytest.CaptureFixture
) -> None:
    with ClassProgress() as progress:
        for number, result in enumerate(results, start=1):
            progress(result, number, len(results))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"[1/5] alder {TOPIC}: 10/12 (2 by hand)",
        f"[2/5] birch {TOPIC}: 2.5/12",
        f"[3/5] cedar {TOPIC}: not graded: it is not JSON [/bold]",
        f"[4/5] dogwood {TOPIC}: grading failed: OSError: no",
    ]


def samples_of(course: Course) -> list[Sample]:
    return [sample for sample in load_samples(course.root) if sample.topic == TOPIC]


def kinds_of(course: Course, size: int, mix: str) -> list[str]:
    return [item.kind for item in sampling._enlarged(samples_of(course), size, mix)]


def test_a_larger_class_has_its_size_and_shares(course: Course) -> None:
    kinds = kinds_of(course, 400, "")
    assert len(kinds) == 400
    assert set(kinds) == {sample.kind for sample in samples_of(course)}
    kinds = kinds_of(course, 400, "reference=3, unscaled=1")
    assert set(kinds) == {"reference", "unscaled"}
    assert 260 < kinds.count("reference") < 340
    assert kinds == kinds_of(course, 400, "reference=3, unscaled=1"), "the same each time"
    assert set(kinds_of(course, 5, "late")) == {"late"}


def test_students_of_a_larger_class_have_names_of_their_own(course: Course, tmp_path: Path) -> None:
    assert make_class(course.root, tmp_path, [TOPIC], 3, "reference") == 3
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "student-0001",
        "student-0002",
        "student-0003",
    ]


@pytest.mark.parametrize(
    "mix", ["nobody=1", "reference=many", "reference=0", "late=-1", "late=inf"]
)
def test_a_mix_that_is_none_is_refused(mix: str, course: Course, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=f"--mix: '{mix}' is not KIND=SHARE"):
        make_class(course.root, tmp_path, [TOPIC], 3, mix)


def test_a_sample_class_never_overwrites_real_submissions(course: Course, tmp_path: Path) -> None:
    real = tmp_path / "alder" / TOPIC / f"{TOPIC}.ipynb"
    real.parent.mkdir(parents=True)
    real.write_text("a student's work")
    with pytest.raises(Trouble, match="is not empty, and holds no sample class"):
        make_class(course.root, tmp_path, [TOPIC])
    assert real.read_text() == "a student's work"


def test_a_mix_needs_a_size(course: Course, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="--mix needs --size"):
        make_class(course.root, tmp_path, [TOPIC], None, "reference=1")


def test_the_sample_needs_a_release(own_course: Course, tmp_path: Path) -> None:
    shutil.rmtree(own_course.root / "release")
    with pytest.raises(Trouble, match="is missing"):
        make_class(own_course.root, tmp_path / "submitted", [TOPIC])
    assert not (tmp_path / "submitted").exists()


def test_sample_submissions_are_filled_in_by_name(course: Course, release: NotebookNode) -> None:
    answers = '"""Mine."""\nimport math\n\n\ndef softmax(scores, dim=-1):\n    return scores\n'
    filled = fill(release, answers)
    cells = {grade_id_of(cell): cell.source for cell in filled.cells if grade_id_of(cell)}
    assert cells["softmax"] == "def softmax(scores, dim=-1):\n    return scores"
    assert "NotImplementedError" in cells["attention"]
    helper = next(cell for cell in filled.cells if cell.id == "imports-and-helpers")
    assert helper.source == "import math"
    assert fill(release, "").cells == release.cells


def test_withdrawing_what_was_never_graded_is_no_error(canned_class: Course) -> None:
    submit(canned_class, "alder", "{")
    results = in_process(canned_class)
    assert results["alder"].ungradable
    with Gradebook(f"sqlite:///{canned_class.gradebook}") as gradebook, pytest.raises(MissingEntry):
        gradebook.find_submission(TOPIC, "alder")
