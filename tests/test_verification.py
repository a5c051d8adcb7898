"""Scores follow from records: they are computed again, compared, and rehearsed before they move."""

import base64
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, GradedClass
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI

import autograder.grading.classrun as classrun
import autograder.grading.hashes as hashes
import autograder.nbgrader_hooks as nbgrader_hooks
import autograder.runner.session as session
from autograder.course import Course, Trouble
from autograder.grading.classrun import Result, grade_class
from autograder.grading.records import (
    PROPOSED,
    WITHDRAWN,
    Record,
    load_record,
    packed_answers,
    record_path,
    save_record,
    save_refusals,
)
from autograder.grading.rehearsal import IN_ALL, Change, rehearse
from autograder.grading.verification import Verified, verify_class
from autograder.student.cases import Case, Response, Spec
from autograder.student.verdicts import Verdict

TOPIC = "01_self_attention"
STUDENTS = ("birch", "cedar", "dogwood")


@pytest.fixture
def class_of_three(graded_class: GradedClass, tmp_path: Path) -> Course:
    course = graded_class.copy(tmp_path, *STUDENTS)
    kept = [record_path(course.records, TOPIC, student) for student in STUDENTS]
    for path in (course.records / TOPIC).iterdir():
        if path not in kept:
            path.unlink()
    save_refusals(course.refusals, TOPIC, {})
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        for student in gradebook.students:
            if student.id not in STUDENTS:
                gradebook.remove_student(student.id)
    return course


def record_of(course: Course, student: str) -> Record:
    record = load_record(course.records, TOPIC, student)
    assert record is not None
    return record


def problems(course: Course, **options: Any) -> dict[str, str]:
    told: list[Verified] = []
    verified = verify_class(course, [TOPIC], lambda item, *_: told.append(item), **options)
    assert [item.student for item in told] == [item.student for item in verified[: len(told)]]
    return {item.student: "\n".join(item.problems) for item in verified if item.problems}


def points_in(course: Course) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        return {item.student.id: item.score for item in gradebook.assignment_submissions(TOPIC)}


# ---- what a person gave, and what follows from the due date


def test_what_was_given_by_hand_outlives_a_submission_that_could_not_be_read(
    class_of_three: Course,
) -> None:
    course, notebook = class_of_three, class_of_three.submitted / "dogwood" / TOPIC
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        grade_of_text = gradebook.find_grade("written_scale", TOPIC, TOPIC, "dogwood")
        grade_of_text.manual_score, grade_of_text.extra_credit = 1.5, 0.5
        gradebook.find_comment("written_scale", TOPIC, TOPIC, "dogwood").manual_comment = "Well put"
        gradebook.db.commit()
    before, answer = points_in(course), (notebook / f"{TOPIC}.ipynb").read_bytes()
    (notebook / f"{TOPIC}.ipynb").write_text("")
    for _ in range(2):
        assert grade(course)["dogwood"].ungradable
    assert "dogwood" not in points_in(course)
    (notebook / f"{TOPIC}.ipynb").write_bytes(answer)
    result = grade(course)["dogwood"]
    assert "points by hand of an earlier answer: written_scale" in result.notes
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        given = gradebook.find_grade("written_scale", TOPIC, TOPIC, "dogwood")
        assert (given.manual_score, given.extra_credit) == (1.5, 0.5)
        assert given.needs_manual_grade, "a person looks at it again"
        comment = gradebook.find_comment("written_scale", TOPIC, TOPIC, "dogwood")
        assert comment.manual_comment == "Well put"
        other = gradebook.find_grade("check_softmax", TOPIC, TOPIC, "dogwood")
        assert (other.manual_score, other.extra_credit) == (None, None)
    assert points_in(course) == before

    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        given = gradebook.find_grade("written_scale", TOPIC, TOPIC, "dogwood")
        given.manual_score = given.extra_credit = None
        gradebook.find_comment("written_scale", TOPIC, TOPIC, "dogwood").manual_comment = None
        gradebook.db.commit()
    (notebook / f"{TOPIC}.ipynb").write_text("")
    assert grade(course)["dogwood"].ungradable
    (notebook / f"{TOPIC}.ipynb").write_bytes(answer)
    grade(course)
    assert points_in(course)["dogwood"] == before["dogwood"] - 2, "and not what was taken back"


def test_a_penalty_follows_the_due_date(
    class_of_three: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, config = class_of_three, Course._file_config

    def with_penalty(self: Course) -> Any:
        found = config(self)
        found.LateSubmissionPlugin.penalty_method = "zero"
        return found

    def due(date: str) -> None:
        with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
            gradebook.update_or_create_assignment(TOPIC, duedate=date)

    monkeypatch.setattr(Course, "_file_config", with_penalty)
    points = points_in(course)["dogwood"]
    assert points > 0
    handed_in = course.submitted / "dogwood" / TOPIC / "timestamp.txt"
    handed_in.write_text("2026-10-12 12:00:00 UTC")
    due("2026-10-12 00:00:00 UTC")
    late = grade(course)["dogwood"]
    assert late.points == 0
    assert f"late by 12:00:00: {points:g} points taken off" in late.notes
    assert any(note.startswith("entered again") for note in late.notes)
    due("2026-10-13 00:00:00 UTC")
    assert rehearse(course, [TOPIC], lambda *_: None)[1] != []
    in_time = grade(course)["dogwood"]
    assert (in_time.points, in_time.fresh) == (points, False)
    assert not any("late" in note for note in grade(course)["dogwood"].notes)
    assert rehearse(course, [TOPIC], lambda *_: None)[1] == []


# ---- verify


def test_a_graded_class_verifies(class_of_three: Course, autograder: Command) -> None:
    course = class_of_three
    folders = ("--submitted", course.submitted, "--into", course.into)
    said = autograder("verify", TOPIC, *folders, cwd=course.root)
    assert (said.returncode, said.stderr) == (0, "")
    verified = "3 of 3 submissions verified: their scores follow from their records.\n"
    assert said.stdout == verified
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        gradebook.find_grade("check_softmax", TOPIC, TOPIC, "cedar").extra_credit = 50
        gradebook.db.commit()
    shutil.rmtree(course.submitted / "birch")
    said = autograder("verify", TOPIC, *folders, cwd=course.root)
    assert said.returncode == 0
    assert said.stdout.startswith(verified)
    assert f"Not in {course.submitted}, and not compared: birch." in said.stdout
    assert "cedar 01_self_attention: a person gave points, which no record holds, in softmax." in (
        said.stdout
    )
    shutil.rmtree(course.submitted)
    said = autograder("verify", TOPIC, *folders, cwd=course.root)
    assert f"Submissions were not compared: none of these is in {course.submitted}." in said.stdout


def test_what_was_replaced_by_what_cannot_be_graded_leaves_no_record_behind(
    class_of_three: Course,
) -> None:
    (class_of_three.submitted / "birch" / TOPIC / f"{TOPIC}.ipynb").write_text("lost")
    assert grade(class_of_three)["birch"].ungradable
    assert problems(class_of_three) == {}
    assert record_path(class_of_three.records / WITHDRAWN, TOPIC, "birch").is_file()


def test_run_again_on_the_same_cases_it_comes_to_the_same(class_of_three: Course) -> None:
    assert problems(class_of_three, run=True) == {}
    record = record_of(class_of_three, "birch")
    other = record_of(class_of_three, "cedar")
    save_record(class_of_three.records, replace(record, verdicts=other.verdicts))
    said = problems(class_of_three, run=True)["birch"]
    assert "attention: recorded as failed (unscaled), 0 points, run again it is passed" in said


def raised_points(record: Record) -> Record:
    first, *rest = record.verdicts
    return replace(record, verdicts=[replace(first, points=2.0), *rest])


def foreign_answers(record: Record) -> Record:
    given = record.responses
    return replace(record, answers=packed_answers(given | {"attention": []}))


TAMPERED = {
    "points": (raised_points, "softmax: recorded as passed, 2 points, from its answers it is"),
    "answers": (foreign_answers, "attention: recorded as passed, 3 points, from its answers it"),
    "no answers": (lambda record: replace(record, answers="x"), "cannot be asked again"),
    "seed": (lambda record: replace(record, seed=7), "its questions cannot be asked again"),
    "cases": (lambda record: replace(record, cases_hash="0" * 64), "its cases are others now"),
    "by case": (lambda record: replace(record, cases={}), "verdicts on single cases do not follow"),
    "submission": (
        lambda record: replace(record, hashes=replace(record.hashes, notebook="0")),
        "in its place lies now another notebook or another file, or the release has changed: "
        "grade again",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_changed_in_a_record_is_found(what: str, class_of_three: Course) -> None:
    change, said = TAMPERED[what]
    save_record(class_of_three.records, change(record_of(class_of_three, "birch")))
    found = problems(class_of_three)
    assert list(found) == ["birch"]
    assert said in found["birch"]


def test_what_was_changed_in_the_gradebook_is_found(
    class_of_three: Course, autograder: Command
) -> None:
    course = class_of_three
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        gradebook.find_grade("check_attention", TOPIC, TOPIC, "cedar").auto_score = 3.0
        gradebook.add_student("zelkova")
        gradebook.add_submission(TOPIC, "zelkova")
        gradebook.db.commit()
    record_path(course.records, TOPIC, "dogwood").write_text("{")
    folders = ("--submitted", course.submitted, "--into", course.into)
    said = autograder("verify", TOPIC, *folders, cwd=course.root)
    assert said.returncode == 1
    assert "attention: 0 points by the record, 3 in the gradebook" in said.stdout
    assert "its record cannot be read" in said.stdout
    assert "the gradebook has points of it, and there is no record" in said.stdout
    assert "1 of 4 submissions verified" in said.stdout


def test_without_records_there_is_nothing_to_verify(course: Course, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match=r"There are no records in .*: grade the class first"):
        verify_class(replace(course, into=tmp_path), [TOPIC], lambda *_: None)


def test_a_record_holds_a_verdict_and_a_time_for_each_case(class_of_three: Course) -> None:
    record = record_of(class_of_three, "cedar")
    assert list(record.cases) == [verdict.exercise for verdict in record.verdicts]
    for verdict in record.verdicts:
        cases = record.cases[verdict.exercise]
        assert len(cases) > 8
        assert all(case.passed for case in cases) == verdict.passed
        assert all(0 < case.seconds < 10 for case in cases)
        assert all(bool(case.detail) != case.passed for case in cases)
    assert len(base64.b64decode(record.answers)) < 2**20
    assert record.graded_at.startswith("20")
    assert record.limits["cell"] == 90.0
    assert not record.met_limit


# ---- what changed on our side


def grade(course: Course) -> dict[str, Result]:
    return {item.student: item for item in grade_class(course, [TOPIC], lambda *_: None)}


def never(*given: object, **named: object) -> Record:
    raise AssertionError("a notebook was run that need not be")


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The course after a change of its judge: no softmax passes any more."""
    judge = session.judge

    def strict(spec: Spec, cases: list[Case], responses: list[Response]) -> Verdict:
        if spec.id == "softmax":
            return Verdict(spec.id, "failed", 0.0, spec.points, "unstable", "Not any more.")
        return judge(spec, cases, responses)

    monkeypatch.setattr(session, "judge", strict)
    monkeypatch.setattr(hashes, "hash_of_judge", lambda topic, release: "after the change")


def test_after_a_change_of_the_judge_answers_are_judged_again_without_being_run(
    class_of_three: Course, stricter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classrun, "make_record", never)
    before = points_in(class_of_three)
    results = grade(class_of_three)
    assert all(item.judged_again and not item.fresh for item in results.values())
    assert points_in(class_of_three) == {name: points - 3 for name, points in before.items()}
    for student in STUDENTS:
        page = class_of_three.into / "feedback" / student / TOPIC / f"{TOPIC}.html"
        text = page.read_text(encoding="utf-8")
        assert text.count("On fresh cases, which is what counts:") == 4
        assert "Not any more." in text
    assert problems(class_of_three) == {}
    again = grade(class_of_three)
    assert not any(item.judged_again or item.fresh for item in again.values())


def test_nbgraders_own_command_judges_answers_again_too(
    class_of_three: Course, stricter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nbgrader_hooks, "make_record", never)
    before = points_in(class_of_three)
    api = NbGraderAPI(config=class_of_three.config())
    said = api.autograde(TOPIC, "birch", force=True)
    assert said["success"], said["log"]
    assert points_in(class_of_three) == {**before, "birch": before["birch"] - 3}


def test_after_a_change_of_the_questions_notebooks_are_run_again(
    class_of_three: Course, stricter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []

    def noted(student: str, *given: Any, **named: Any) -> Record:
        run.append(student)
        return record_of(class_of_three, student)

    monkeypatch.setattr(classrun, "make_record", noted)
    monkeypatch.setattr("autograder.grading.judging.hash_of_questions", lambda cases: "others")
    assert all(item.fresh for item in grade(class_of_three).values())
    assert sorted(run) == list(STUDENTS)


# ---- a rehearsal


def state_of(course: Course) -> dict[str, bytes]:
    return {
        str(path.relative_to(course.into)): path.read_bytes()
        for path in sorted(course.into.rglob("*"))
        if path.is_file() and PROPOSED not in path.parts
    }


def test_a_rehearsal_shows_what_would_change_and_changes_nothing(
    class_of_three: Course, stricter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, points = state_of(class_of_three), points_in(class_of_three)
    results, changes = rehearse(class_of_three, [TOPIC], lambda *_: None)
    assert [item.student for item in results] == list(STUDENTS)
    assert changes == [
        change
        for name in STUDENTS
        for change in (
            Change(name, TOPIC, "check_softmax", 3.0, 0.0),
            Change(name, TOPIC, IN_ALL, points[name], points[name] - 3),
        )
    ]
    assert state_of(class_of_three) == before
    assert points_in(class_of_three) == points
    monkeypatch.setattr(classrun, "judge_again", never)
    monkeypatch.setattr(classrun, "make_record", never)
    now = grade(class_of_three)
    assert all(item.fresh and not item.judged_again for item in now.values()), "and not unchanged"
    assert points_in(class_of_three) == {name: number - 3 for name, number in points.items()}
    assert not list((class_of_three.records / PROPOSED).rglob("*.json"))
    assert rehearse(class_of_three, [TOPIC], lambda *_: None)[1] == []


def dry_run(autograder: Command, course: Course) -> subprocess.CompletedProcess:
    folders = ("--submitted", course.submitted, "--into", course.into)
    return autograder("grade", TOPIC, "--dry-run", *folders, cwd=course.root)


def test_a_rehearsal_by_the_command(class_of_three: Course, autograder: Command) -> None:
    course = class_of_three
    assert "Nothing would change in the gradebook." in dry_run(autograder, course).stdout
    notebooks = [course.submitted / name / TOPIC / f"{TOPIC}.ipynb" for name in STUDENTS]
    shutil.copy(notebooks[2], notebooks[1])  # 3 points before, 7 after
    notebooks[0].write_text("lost")
    before = state_of(course)
    said = dry_run(autograder, course)
    assert (said.returncode, said.stderr) == (0, "")
    lines = [line for line in said.stdout.splitlines() if line.startswith("│")]
    assert any("cedar" in line and "0 → 2" in line for line in lines)
    assert any("birch" in line and "3 → —" in line for line in lines)
    assert any("birch" in line and "is not JSON" in line for line in lines)
    assert any("cedar" in line and "3 → 7" in line and "in all" in line for line in lines)
    assert not any("dogwood" in line for line in lines)
    assert "Nothing is written but records of what was run" in said.stdout
    assert state_of(course) == before


def test_a_rehearsal_before_anything_was_graded(
    class_of_three: Course, autograder: Command, tmp_path: Path
) -> None:
    course = replace(class_of_three, into=tmp_path / "nothing yet")
    said = dry_run(autograder, course)
    assert (said.returncode, said.stderr) == (0, "")
    assert "— → 3" in said.stdout
    assert not course.gradebook.exists()
    kept = sorted(path.stem for path in (course.records / PROPOSED / TOPIC).iterdir())
    assert kept == list(STUDENTS)
    data = json.loads(record_path(course.records / PROPOSED, TOPIC, "birch").read_text())
    assert data["student"] == "birch"


def test_feedback_is_written_anew_and_counted(class_of_three: Course, autograder: Command) -> None:
    course = class_of_three
    for folder in (course.into / "autograded").iterdir():
        if folder.name not in STUDENTS:
            shutil.rmtree(folder)
    pages = [course.into / "feedback" / name / TOPIC / f"{TOPIC}.html" for name in STUDENTS]
    before = [page.stat().st_mtime_ns for page in pages]
    grades = (course.into / "grades.csv").stat().st_mtime_ns
    said = autograder("feedback", TOPIC, "--into", course.into, cwd=course.root)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("Feedback for 3 submissions is in ")
    assert (course.into / "grades.csv").stat().st_mtime_ns > grades
    assert all(page.stat().st_mtime_ns > then for page, then in zip(pages, before, strict=True))
