"""Whole classes: two hundred students, and a run that is killed again and again."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, GradedClass
from nbgrader.api import Gradebook

from autograder.course import Course
from autograder.grading.records import load_record
from autograder.runner import kernels
from autograder.sample import Sample, load_samples, make_class

TOPIC = "01_self_attention"
SIZE = 200
SHARES = {"reference": 5, "unscaled": 2, "another-way": 1, "raises": 1, "over-queries": 1}
KILLS = 10


def rows_of(course: Course, *students: str) -> dict[str, Any]:
    """All that the gradebook says of each student, but for numbers of its own."""
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        return {
            item.student.id: (
                item.timestamp,
                item.score,
                [
                    (
                        notebook.late_submission_penalty,
                        sorted(
                            (str(grade.name), grade.auto_score, grade.needs_manual_grade)
                            for grade in notebook.grades
                        ),
                        sorted((str(text.name), text.comment) for text in notebook.comments),
                    )
                    for notebook in item.notebooks
                ],
            )
            for item in gradebook.assignment_submissions(TOPIC)
            if not students or item.student.id in students
        }


# ---- two hundred


def test_a_class_of_two_hundred_is_graded_and_counted(
    course: Course, autograder: Command, tmp_path: Path
) -> None:
    submitted, into = tmp_path / "submitted", tmp_path / "results"
    mix = ",".join(f"{kind}={share}" for kind, share in SHARES.items())
    assert make_class(course.root, submitted, [TOPIC], SIZE, mix) == SIZE
    wanted = wanted_points(course, submitted)
    folders = ("--submitted", submitted, "--into", into)
    said = autograder("grade", TOPIC, *folders, cwd=course.root, seconds=1500)
    assert (said.returncode, said.stderr) == (0, "")
    assert f"{SIZE} graded now, 0 unchanged, 0 not graded." in said.stdout
    assert said.stdout.count(f"/{SIZE}] student-") == SIZE

    graded = Course.at(course.root, submitted, into)
    rows = rows_of(graded)
    assert {student: row[1] for student, row in rows.items()} == wanted
    assert len(wanted) == SIZE
    assert len(set(wanted.values())) > 2
    assert len(list(into.glob(f"feedback/*/{TOPIC}/{TOPIC}.html"))) == SIZE
    assert len(list((graded.records / TOPIC).glob("*.json"))) == SIZE
    assert len((into / "grades.csv").read_text().splitlines()) == SIZE + 1

    said = autograder("grade", TOPIC, *folders, cwd=course.root, seconds=600)
    assert f"0 graded now, {SIZE} unchanged, 0 not graded." in said.stdout
    assert rows_of(graded) == rows


def wanted_points(course: Course, submitted: Path) -> dict[str, float]:
    """What class.toml promises for each, told by the notebook that was handed in."""
    kinds: dict[bytes, float] = {}
    for sample in promised(course):
        if sample.kind in SHARES and not sample.twist:
            alone = submitted.parent / "alone"
            make_class(course.root, alone, [TOPIC], 1, sample.kind)
            (notebook,) = alone.glob(f"*/{TOPIC}/{TOPIC}.ipynb")
            kinds[notebook.read_bytes()] = sample.points
            shutil.rmtree(alone)
    return {
        path.parent.parent.name: kinds[path.read_bytes()]
        for path in submitted.glob(f"*/{TOPIC}/{TOPIC}.ipynb")
    }


def promised(course: Course) -> list[Sample]:
    return [sample for sample in load_samples(course.root) if sample.topic == TOPIC]


# ---- killed


def test_a_run_killed_at_ten_random_moments_ends_as_an_undisturbed_one(
    graded_class: GradedClass, tmp_path: Path
) -> None:
    slow = "juniper"  # holds an endless loop
    submitted = graded_class.course.submitted
    students = [path.name for path in submitted.iterdir() if path.is_dir() and path.name != slow]
    for student in students:
        shutil.copytree(submitted / student, tmp_path / "submitted" / student)
    course = Course.at(graded_class.course.root, tmp_path / "submitted", tmp_path / "results")
    seed = int(time.time())
    chance = random.Random(seed)
    seeds: dict[str, int] = {}
    for _ in range(KILLS):
        kill_after(course, chance.uniform(1.0, 12.0))
        now = seeds_of(course)
        assert seeds.items() <= now.items(), f"a notebook was graded twice ({seed=})"
        seeds = now
    assert run(course).wait(timeout=400) == 0
    assert seeds.items() <= seeds_of(course).items(), f"{seed=}"
    undisturbed = rows_of(graded_class.course, *students)
    assert rows_of(course) == undisturbed, f"{seed=}"
    pages = {path.relative_to(course.into) for path in course.into.glob("feedback/*/*/*.html")}
    assert {path.parts[1] for path in pages} == set(undisturbed)
    assert not list(course.into.rglob("*.partial"))


def run(course: Course, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).with_name("autograder")
    folders = ["--submitted", str(course.submitted), "--into", str(course.into)]
    return subprocess.Popen(
        [str(program), "grade", TOPIC, *folders],
        cwd=course.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        # Whoever runs the tests in the background has Ctrl-C ignored, and would hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        start_new_session=True,
    )


def kill_after(course: Course, seconds: float) -> None:
    """SIGKILL: nothing in the process can act on it."""
    process = run(course)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def seeds_of(course: Course) -> dict[str, int]:
    records = {
        path.stem: load_record(course.records, TOPIC, path.stem)
        for path in (course.records / TOPIC).glob("*.json")
    }
    assert None not in records.values(), "a record was left half written"
    return {student: record.seed for student, record in records.items() if record}


def test_what_a_killed_nursery_left_is_swept(tmp_path: Path) -> None:
    left, living, young, old = (tmp_path / f"{kernels.PREFIX}{name}" for name in "abcd")
    for folder in (left, living, young, old):
        (folder / "boxes").mkdir(parents=True)
    (left / "lives").touch()
    os.utime(old, (1, 1))
    with kernels._locked(living / "lives"):
        kernels.sweep(tmp_path)
        assert sorted(tmp_path.iterdir()) == [living, young]
    (tmp_path / "another").mkdir()
    kernels.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "another"]


@pytest.mark.parametrize("kill_during", [0.5])
def test_a_kernel_dies_with_the_process_that_had_it_forked(
    kill_during: float, graded_class: GradedClass, tmp_path: Path
) -> None:
    """Not one process in a sandbox is left behind by a run that was killed."""
    shutil.copytree(graded_class.course.submitted / "juniper", tmp_path / "submitted" / "juniper")
    course = Course.at(graded_class.course.root, tmp_path / "submitted", tmp_path / "results")
    process = run(course)
    deadline = time.monotonic() + 60
    while not (inside := kernels_below(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert inside, "no kernel was started"
    time.sleep(kill_during)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in inside) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in inside if Path(f"/proc/{pid}").exists()]


def kernels_below(root: int) -> list[int]:
    """The processes that come from `root`, once there are enough of them for a kernel."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found, waiting = [], [root]
    while waiting:
        parent = waiting.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        found += children
        waiting += children
    return found if len(found) >= 4 else []  # bubblewrap, nursery, keeper, kernel


def run_that_goes_on(
    graded_class: GradedClass, tmp_path: Path
) -> tuple[Course, subprocess.Popen[bytes]]:
    """One that has graded alder, and is at work on a notebook with an endless loop."""
    course = Course.at(graded_class.course.root, tmp_path / "submitted", tmp_path / "results")
    for student in ("alder", "juniper"):  # the second one holds the loop
        shutil.copytree(graded_class.course.submitted / student, course.submitted / student)
    process = run(course, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while "alder" not in seeds_of(course) and time.monotonic() < deadline:
        time.sleep(0.1)
    return course, process


def test_ctrl_c_ends_a_run_at_once_and_in_a_sentence(
    graded_class: GradedClass, tmp_path: Path
) -> None:
    """Even where a notebook would run on for long; what was done before is kept."""
    course, process = run_that_goes_on(graded_class, tmp_path)
    interrupted = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - interrupted < 8
    assert process.returncode == 130
    assert said.decode().strip() == (
        "autograder: stopped. What was done is kept; the next run goes on from there."
    )
    assert sorted(seeds_of(course)) == ["alder"]


def test_a_second_run_into_the_same_folder_is_told_of_the_first(
    graded_class: GradedClass, tmp_path: Path
) -> None:
    """And takes nothing from it; a run that was killed stands in nobody's way."""
    course, first = run_that_goes_on(graded_class, tmp_path)
    second = run(course, stderr=subprocess.PIPE)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert said.decode().strip() == (
        f"autograder: Another run is grading into {course.into} at this moment: wait until it has "
        "ended, or name another folder with --into."
    )
    assert first.poll() is None
    first.kill()
    first.communicate(timeout=60)
    shutil.rmtree(course.submitted / "juniper")
    third = run(course, stderr=subprocess.PIPE)
    _, said = third.communicate(timeout=60)
    assert (third.returncode, said) == (0, b"")
    assert sorted(rows_of(course)) == ["alder"]
