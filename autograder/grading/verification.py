"""Verifying a graded class: every score is computed again from the record that it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry

from autograder.build.release import read_notebook
from autograder.course import Course, GradingOptions, Trouble, check_id
from autograder.grading.gradebook import explained_errors, open_gradebook
from autograder.grading.hashes import hash_of_files
from autograder.grading.judging import SecretCases, judge_again, make_record
from autograder.grading.records import Record, load_record
from autograder.grading.submissions import Submission, Ungradable, hash_of_notebook, prepared
from autograder.runner.sandbox import require_sandbox
from autograder.student.verdicts import Verdict, points_text


@dataclass
class Verified:
    """One record: what does not agree with it (nothing, where all does), whether its submission
    was there to be compared, and cells of the judge's in which a person gave points."""

    student: str
    topic: str
    problems: list[str] = field(default_factory=list)
    compared: bool = True
    by_hand: list[str] = field(default_factory=list)


Told = Callable[[Verified, int, int], None]  # what was verified, how many are, of how many


def verify_class(
    course: Course, topics: list[str], told: Told, run: bool = False
) -> list[Verified]:
    """For each record: the cases are made again from its seed, the verdicts computed again from
    its answers, and both compared with it, with the submission and with the gradebook. With `run`
    the notebook is run again as well, on the same cases, and must come to the same verdicts."""
    options = course.options()
    if run and options.sandbox:
        require_sandbox()
    with explained_errors(course):
        names = [
            (path.stem, topic)
            for topic in topics
            for path in sorted((course.records / topic).glob("*.json"))
        ]
        if not names:
            raise Trouble(
                f"There are no records in {course.records}: grade the class first, or say where "
                "with --into (for the sample class: --into sample)."
            )
        drawn, verified = SecretCases(), []
        with open_gradebook(course) as gradebook:
            entered = _entered_in(gradebook, topics)
            for student, topic in names:
                found = Verified(student, topic)
                record = load_record(course.records, topic, student)
                if record is None:
                    found.problems.append("its record cannot be read")
                else:
                    found.problems += _problems_of(course, gradebook, record, drawn)
                    found.compared = _submission_of(course, record).folder.is_dir()
                    found.by_hand = _by_hand(gradebook, record)
                    if run:
                        found.problems += _problems_when_run(course, record, options, drawn)
                verified.append(found)
                told(found, len(verified), len(names))
        for student, topic in sorted(entered - set(names)):
            verified.append(
                Verified(student, topic, ["the gradebook has points of it, and there is no record"])
            )
    return verified


def _problems_of(
    course: Course, gradebook: Gradebook, record: Record, drawn: SecretCases
) -> list[str]:
    cases = drawn.of(record.topic, record.seed)
    problems = []
    again = judge_again(record, cases, record.hashes)
    if again is None:
        problems.append("its questions cannot be asked again: the course has changed since")
    else:
        if cases.cases_hash != record.cases_hash:
            problems.append("its cases are others now: the course has changed since")
        problems += _differences("from its answers", record.verdicts, again.verdicts)
        if again.cases != record.cases:
            problems.append("its verdicts on single cases do not follow from its answers")
    return problems + _against_gradebook(gradebook, record) + _against_submission(course, record)


def _differences(how: str, before: list[Verdict], after: list[Verdict]) -> list[str]:
    told = []
    theirs = {verdict.exercise: verdict for verdict in after}
    for mine in before:
        other = theirs.get(mine.exercise)
        if other is None or _outcome(mine) != _outcome(other):
            now = _named(other) if other else "nothing"
            told.append(f"{mine.exercise}: recorded as {_named(mine)}, {how} it is {now}")
    return told


def _outcome(verdict: Verdict) -> tuple[str, float, str | None]:
    return verdict.status, verdict.points, verdict.diagnosis


def _named(verdict: Verdict) -> str:
    name = f" ({verdict.diagnosis})" if verdict.diagnosis else ""
    return f"{verdict.status}{name}, {points_text(verdict.points)} points"


def _against_gradebook(gradebook: Gradebook, record: Record) -> list[str]:
    try:
        entered = gradebook.find_submission(record.topic, record.student)
    except MissingEntry:
        return ["it is not in the gradebook"]
    scores = {grade.name: grade.auto_score for item in entered.notebooks for grade in item.grades}
    return [
        f"{name}: {points_text(points)} points by the record, "
        f"{_points_or_none(scores.get(check_id(name)))} in the gradebook"
        for name, points in record.points.items()
        if scores.get(check_id(name)) != points
    ]


def _by_hand(gradebook: Gradebook, record: Record) -> list[str]:
    """The exercises whose score is not the judge's alone."""
    try:
        entered = gradebook.find_submission(record.topic, record.student)
    except MissingEntry:
        return []
    changed = {
        str(grade.name)
        for item in entered.notebooks
        for grade in item.grades
        if grade.manual_score is not None or grade.extra_credit
    }
    return [name for name in record.points if check_id(name) in changed]


def _points_or_none(score: float | None) -> str:
    return "none" if score is None else points_text(score)


def _against_submission(course: Course, record: Record) -> list[str]:
    submission = _submission_of(course, record)
    if not submission.folder.is_dir():
        return []  # it may be kept elsewhere, and is told as not compared
    try:
        notebook, files, _ = _prepared(course, record)
    except Ungradable as reason:
        return [f"what lies in its place now cannot be graded: {reason}"]
    now = (hash_of_notebook(notebook), hash_of_files(files))
    if now != (record.hashes.notebook, record.hashes.files):
        return [
            "in its place lies now another notebook or another file, or the release has changed: "
            "grade again"
        ]
    return []


def _problems_when_run(
    course: Course, record: Record, options: GradingOptions, drawn: SecretCases
) -> list[str]:
    try:
        notebook, files, _ = _prepared(course, record)
    except Ungradable as reason:
        return [f"it cannot be run again: {reason}"]
    given = (record.student, record.topic, notebook, files, record.hashes, options, drawn)
    again = make_record(*given, record.seed)
    return _differences("run again", record.verdicts, again.verdicts)


def _prepared(course: Course, record: Record) -> tuple[NotebookNode, dict[str, bytes], list[str]]:
    release = read_notebook(course.release_notebook(record.topic))
    return prepared(_submission_of(course, record), release)


def _submission_of(course: Course, record: Record) -> Submission:
    folder = course.submitted / record.student / record.topic
    return Submission(record.student, record.topic, folder)


def _entered_in(gradebook: Gradebook, topics: list[str]) -> set[tuple[str, str]]:
    return {
        (str(item.student.id), topic)
        for topic in topics
        for item in gradebook.assignment_submissions(topic)
    }
