"""nbgrader's gradebook: the one place that writes it, and what its troubles mean to a person."""

from __future__ import annotations

import contextlib
import errno
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import nbformat
from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, parse_utc
from sqlalchemy.exc import SQLAlchemyError

from autograder.build.release import generate
from autograder.course import Course, Trouble, check_id, grade_id_of, parse_time
from autograder.grading import byhand
from autograder.grading.records import Record, load_refusals, put_aside, record_path
from autograder.grading.safe import safe_to_show
from autograder.grading.submissions import TIMESTAMP_FILE, Submission, is_usable_name
from autograder.nbgrader_hooks import FIELDS, grade_rows, write_csv

LARGEST_TIMESTAMP = 1000  # bytes


def open_gradebook(course: Course) -> Gradebook:
    return Gradebook(f"sqlite:///{course.gradebook}")


def enter_assignment(course: Course, topic: str) -> None:
    """Enter the assignment, as its source stands, in the gradebook, with its due date."""
    release = course.release_notebook(topic)
    others = [path.name for path in course.source_notebook(topic).parent.glob("*.ipynb")]
    if len(others) > 1:
        raise Trouble(
            f"source/{topic} holds {len(others)} notebooks, where an assignment is one: move all "
            f"but {release.name} away, then run `make release`."
        )
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        generate(course, topic, Path(scratch))
        made = (Path(scratch) / topic / release.name).read_bytes()
    if not release.is_file() or release.read_bytes() != made:
        raise Trouble(f"release/{topic} does not fit source/{topic}: run `make release` first.")
    due = course.due_date(topic)
    with open_gradebook(course) as gradebook:
        if due and gradebook.find_assignment(topic).duedate is None:
            gradebook.update_or_create_assignment(topic, duedate=due)


def is_entered(
    course: Course, gradebook: Gradebook, submission: Submission, record: Record
) -> bool:
    """Whether gradebook and folders have it, as the record and the submission's time say.

    Record, graded notebook and feedback are written in this order; where a run was killed in
    between, what lies behind is older than its origin, or missing.
    """
    where = Path(submission.student) / submission.topic / f"{submission.topic}.ipynb"
    made = [
        record_path(course.records, submission.topic, submission.student),
        course.into / "autograded" / where,
        course.into / "feedback" / where.with_suffix(".html"),
    ]
    if not all(path.is_file() for path in made):
        return False
    times = [path.stat().st_mtime_ns for path in made]
    if times != sorted(times):
        return False
    try:
        entered = gradebook.find_submission(submission.topic, submission.student)
    except MissingEntry:
        return False
    points = {check_id(name): given for name, given in record.points.items()}
    scores = {
        grade.name: grade.auto_score
        for notebook in entered.notebooks
        for grade in notebook.grades
        if grade.cell.cell_type == "code"
    }
    return (
        scores == points
        and entered.timestamp == _timestamp(submission)
        and all(
            (notebook.late_submission_penalty or 0.0)
            == (_penalty(course, submission, entered, notebook) or 0.0)
            for notebook in entered.notebooks
        )
    )


def _timestamp(submission: Submission) -> datetime | None:
    """When it was handed in (UTC); None where timestamp.txt does not say so."""
    file = submission.folder / TIMESTAMP_FILE
    try:
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_TIMESTAMP:
            return None  # a pipe would be waited for, a link leads elsewhere
        text = file.read_text().strip()
        try:
            return parse_time(text)
        except ValueError:  # a zone by its name, or a way of writing that the exchange has not
            return cast(datetime, parse_utc(text))
    except (ValueError, OverflowError, OSError):
        return None


def enter(
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    record: Record,
    files: dict[str, bytes],
) -> SubmittedAssignment:
    """Write what was judged where nbgrader looks for it; the gradebook's part is not committed.

    This is what nbgrader's autograde does after a notebook was run, without its nine times of
    opening the database and its two dozen commits for each.
    """
    write_graded(course, submission, record, files)
    with gradebook.db.no_autoflush:  # else each row that is looked at would write the one before
        entered = find_or_add(course, gradebook, submission)
        assignment = entered.assignment
        held = [(n.grade_cells, n.solution_cells, n.task_cells) for n in assignment.notebooks]
        entered.timestamp = _timestamp(submission)
        (notebook,) = entered.notebooks
        _give_points(notebook, record)
    gradebook.db.flush()
    gradebook.db.expire(entered)
    gradebook.db.expire(notebook)
    notebook.late_submission_penalty = _penalty(course, submission, entered, notebook)
    gradebook.db.flush()
    del held  # until here, so that no grade asked for its cell by itself
    return entered


def _give_points(notebook: SubmittedNotebook, record: Record) -> None:
    """To each cell that has some, and to each that may be commented its comment."""
    cells = {grade_id_of(cell): cell for cell in record.executed.cells if grade_id_of(cell)}
    points = {check_id(name): given for name, given in record.points.items()}
    for grade in notebook.grades:
        cell = cells[grade.name]
        if cell.cell_type == "code":
            grade.auto_score = points.get(grade.name, 0.0)
        else:
            grade.auto_score, _ = determine_grade(cell)
        grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
    for comment in notebook.comments:
        cell = cells.get(comment.name)
        untouched = cell and cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
        comment.auto_comment = "No response." if untouched else None


def write_graded(
    course: Course, submission: Submission, record: Record, files: dict[str, bytes]
) -> None:
    """The graded notebook, with the files beside it, where formgrader shows it."""
    folder = course.into / "autograded" / submission.student / submission.topic
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    handed_in = _timestamp(submission)
    if handed_in is not None:
        (folder / TIMESTAMP_FILE).write_text(f"{handed_in} UTC")
    # Not nbformat.write, which looks once more whether it is valid, and writes it all the same.
    text = nbformat.v4.writes(safe_to_show(record.executed))
    (folder / submission.notebook.name).write_text(f"{text}\n", encoding="utf-8")


def find_or_add(
    course: Course, gradebook: Gradebook, submission: Submission
) -> SubmittedAssignment:
    """Its row, with one for each cell that is graded or may be commented; new ones are not yet
    written."""
    try:
        found: SubmittedAssignment = gradebook.find_submission(submission.topic, submission.student)
        return found
    except MissingEntry:
        pass
    try:
        student = gradebook.find_student(submission.student)
    except MissingEntry:
        student = Student(id=submission.student)
        gradebook.db.add(student)
    assignment = gradebook.find_assignment(submission.topic)
    entered = SubmittedAssignment(assignment=assignment, student=student)
    for notebook in assignment.notebooks:
        submitted = SubmittedNotebook(notebook=notebook, assignment=entered)
        for cell in [*notebook.grade_cells, *notebook.task_cells]:
            Grade(cell=cell, notebook=submitted)
        for cell in [*notebook.solution_cells, *notebook.task_cells]:
            Comment(cell=cell, notebook=submitted)
    gradebook.db.add(entered)  # and with it all of these
    byhand.give_back(course.records, entered)
    return entered


def _penalty(
    course: Course,
    submission: Submission,
    entered: SubmittedAssignment,
    notebook: SubmittedNotebook,
) -> float | None:
    """What the course's plugin takes off for being late, at most all points."""
    late = entered.total_seconds_late
    if late <= 0:
        return None
    assigning = AssignLatePenalties(config=course.config())
    assigning.init_plugin()
    penalty = assigning.plugin_inst.late_submission_penalty(
        submission.student, notebook.score, late
    )
    return None if penalty is None else max(0.0, min(float(penalty), notebook.score))


def withdraw(course: Course, gradebook: Gradebook, submission: Submission) -> None:
    """Take away what an earlier, gradable version of a submission left."""
    if not is_usable_name(submission.student):
        return
    with contextlib.suppress(MissingEntry):
        entered = gradebook.find_submission(submission.topic, submission.student)
        if not course.rehearses:
            byhand.keep(course.records, entered)
    if not course.rehearses:
        put_aside(course.records, submission.topic, submission.student)
    for step in ("autograded", "feedback"):
        shutil.rmtree(
            course.into / step / submission.student / submission.topic, ignore_errors=True
        )
    with contextlib.suppress(MissingEntry):
        gradebook.remove_submission(submission.topic, submission.student)


@dataclass(frozen=True)
class Standing:
    """What the gradebook says of a submission: points after `penalty` was taken off for being late;
    `by_hand` are points that wait for a person, `again` cells with points of an earlier answer."""

    points: float
    max_points: float
    by_hand: float
    late: timedelta
    penalty: float
    again: list[str]


def standing(gradebook: Gradebook, submission: Submission) -> Standing:
    entered = gradebook.find_submission(submission.topic, submission.student)
    waiting = [
        grade.max_score
        for notebook in entered.notebooks
        for grade in notebook.grades
        if grade.needs_manual_grade and grade.manual_score is None
    ]
    late = timedelta(seconds=round(entered.total_seconds_late))
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in entered.notebooks)
    points = max(0.0, entered.score - penalty)
    again = [name for book in entered.notebooks for name in byhand.to_look_at_again(book.grades)]
    return Standing(points, entered.max_score, sum(waiting), late, penalty, again)


def write_grades(course: Course) -> None:
    """grades.csv, a row for each student and assignment of the gradebook, and for each submission
    that could not be graded, with the reason."""
    with open_gradebook(course) as gradebook:
        rows = grade_rows(gradebook)
    by_key = {(row["assignment"], str(row["student_id"])): row for row in rows}
    blank = {row["assignment"]: row for row in rows}
    for (topic, student), why in load_refusals(course.refusals).items():
        if (topic, student) not in by_key:
            row: dict[str, Any] = dict.fromkeys(FIELDS, "")
            row |= {"assignment": topic, "student_id": student}
            known = blank.get(topic, {})
            row |= {name: known[name] for name in ("duedate", "max_score") if name in known}
            row |= {"raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
            by_key[topic, student] = row
        by_key[topic, student]["not_graded"] = why
    ordered = [by_key[key] for key in sorted(by_key)]
    write_csv(course.into / "grades.csv", ordered, [*FIELDS, "not_graded"])


@contextmanager
def explained_errors(course: Course) -> Iterator[None]:
    """Turns what the disk and the database say into a sentence for a person."""
    try:
        yield
    except Trouble as trouble:  # nbgrader may have met the disk or the database
        raise Trouble(_known(trouble, course) or str(trouble)) from trouble
    except (OSError, SQLAlchemyError) as error:
        raise Trouble(explain(error, course)) from error


def explain(error: Exception, course: Course) -> str:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return _known(error, course) or f"Cannot read or write under {course.into}: {reason}"


def _known(error: Exception, course: Course) -> str:
    text = str(error)
    full = isinstance(error, OSError) and error.errno == errno.ENOSPC
    if full or "disk is full" in text or "No space left" in text:
        return (
            f"No space is left in {course.into}. Free some and run this again: what was graded "
            "is kept, and the rest goes on from there."
        )
    if "Cannot add or remove cells" in text or "Cannot modify existing assignment" in text:
        return (
            "The source has gained or lost a graded cell since the class was graded, which a "
            f"gradebook does not take: undo that, or move {course.gradebook} away and grade all "
            "again."
        )
    if "readonly database" in text or "unable to open database" in text:
        return f"The gradebook {course.gradebook} cannot be written. Make it writable."
    if "not a database" in text or "malformed" in text:
        return f"{course.gradebook} is not a gradebook, or damaged: move it away or restore it."
    return ""
