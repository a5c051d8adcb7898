"""nbgrader's gradebook: the one place that writes it, and what its troubles mean to a person."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import parse_utc
from sqlalchemy.exc import SQLAlchemyError

from autograder.build.release import generate, reason_in
from autograder.course import Course, Trouble, parse_time
from autograder.grading.records import record_path
from autograder.grading.submissions import TIMESTAMP_FILE, Submission, is_usable_name
from autograder.nbgrader_hooks import grade_rows, write_csv


def open_gradebook(course: Course) -> Gradebook:
    return Gradebook(f"sqlite:///{course.gradebook}")


def enter_assignment(course: Course, topic: str) -> None:
    """Enter the assignment, as its source stands, in the gradebook, with its due date."""
    release = course.release_notebook(topic)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        generate(course, topic, Path(scratch))
        made = (Path(scratch) / topic / release.name).read_bytes()
    if not release.is_file() or release.read_bytes() != made:
        raise Trouble(f"release/{topic} does not fit source/{topic}: run `make release` first.")
    due = course.due_date(topic)
    with open_gradebook(course) as gradebook:
        if due and gradebook.find_assignment(topic).duedate is None:
            gradebook.update_or_create_assignment(topic, duedate=due)


def is_entered(course: Course, submission: Submission) -> bool:
    """Whether the gradebook has it, as submitted at the time that its timestamp says.

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
    with open_gradebook(course) as gradebook:
        try:
            entered = gradebook.find_submission(submission.topic, submission.student)
        except MissingEntry:
            return False
        ungraded = any(
            grade.auto_score is None and grade.cell.cell_type == "code"
            for notebook in entered.notebooks
            for grade in notebook.grades
        )
        return not ungraded and entered.timestamp == _timestamp(submission)


def _timestamp(submission: Submission) -> datetime | None:
    """When it was handed in (UTC); None where timestamp.txt does not say so."""
    file = submission.folder / TIMESTAMP_FILE
    try:
        text = file.read_text().strip()
        try:
            return parse_time(text)
        except ValueError:  # a zone by its name, or a way of writing that the exchange has not
            return cast(datetime, parse_utc(text))
    except (ValueError, OverflowError, OSError):
        return None


def run_nbgrader(
    course: Course, submission: Submission, notebook: NotebookNode, files: dict[str, bytes]
) -> str:
    """nbgrader's autograde and generate_feedback for one submission; what failed, or nothing.

    nbgrader is handed a copy that holds the repaired notebook and plain files alone: it stumbles
    over pipes, broken links and odd timestamps, and takes every time zone for UTC.
    """
    config = course.config()
    with tempfile.TemporaryDirectory(prefix="submission-") as folder:
        copy = Path(folder) / submission.student / submission.topic
        copy.mkdir(parents=True)
        for name, data in files.items():
            (copy / name).write_bytes(data)
        nbformat.write(notebook, copy / submission.notebook.name)
        handed_in = _timestamp(submission)
        if handed_in is not None:
            (copy / TIMESTAMP_FILE).write_text(f"{handed_in} UTC")
        config.CourseDirectory.submitted_directory = folder
        return _run_steps(NbGraderAPI(config=config), submission)


def _run_steps(api: NbGraderAPI, submission: Submission) -> str:
    for step in (api.autograde, api.generate_feedback):
        outcome = step(submission.topic, submission.student, force=True)
        if not outcome["success"]:
            log = outcome.get("log", "") + outcome.get("error", "")
            if "disk is full" in log or "No space left" in log:
                raise OSError(errno.ENOSPC, "No space left on device")
            return f"nbgrader failed: {reason_in(outcome)}"
    return ""


def withdraw(course: Course, submission: Submission) -> None:
    """Take away what an earlier, gradable version of a submission left."""
    if not is_usable_name(submission.student):
        return
    for step in ("autograded", "feedback"):
        shutil.rmtree(
            course.into / step / submission.student / submission.topic, ignore_errors=True
        )
    with open_gradebook(course) as gradebook:
        try:
            gradebook.remove_submission(submission.topic, submission.student)
        except MissingEntry:
            return


@dataclass(frozen=True)
class Standing:
    """What the gradebook says of a submission; `by_hand` are points that wait for a person."""

    points: float
    max_points: float
    by_hand: float
    late: timedelta


def standing(course: Course, submission: Submission) -> Standing:
    with open_gradebook(course) as gradebook:
        entered = gradebook.find_submission(submission.topic, submission.student)
        waiting = [
            grade.max_score
            for notebook in entered.notebooks
            for grade in notebook.grades
            if grade.needs_manual_grade and grade.manual_score is None
        ]
        late = timedelta(seconds=round(entered.total_seconds_late))
        return Standing(entered.score, entered.max_score, sum(waiting), late)


def write_grades(course: Course) -> None:
    """grades.csv, a row for each student and assignment of the gradebook."""
    with open_gradebook(course) as gradebook:
        write_csv(course.into / "grades.csv", grade_rows(gradebook))


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
    if "readonly database" in text or "unable to open database" in text:
        return f"The gradebook {course.gradebook} cannot be written. Make it writable."
    if "not a database" in text or "malformed" in text:
        return f"{course.gradebook} is not a gradebook, or damaged: move it away or restore it."
    return ""
