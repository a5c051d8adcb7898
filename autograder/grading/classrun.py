"""Grading a class: every submission ends in points or in a named reason, whatever the others do."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from nbformat import NotebookNode
from nbformat.warnings import DuplicateCellId, MissingIDFieldWarning
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import parse_utc
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from autograder.build.release import generate, read_notebook, reason_in
from autograder.course import Course, GradingOptions, Trouble
from autograder.grading.records import (
    Record,
    hash_of_files,
    hash_of_judge,
    load_record,
    make_record,
    record_path,
    save_record,
)
from autograder.grading.submissions import (
    Submission,
    Ungradable,
    files_beside,
    find_submissions,
    hash_of_notebook,
    read_submission,
    repair,
)
from autograder.nbgrader_hooks import grade_rows, write_csv


@dataclass
class Result:
    """How one submission ended: points of a maximum, or the reason why there are none."""

    student: str
    topic: str
    points: float = 0.0
    max_points: float = 0.0
    by_hand: float = 0.0  # points of `max_points` that wait for a person
    notes: list[str] = field(default_factory=list)
    ungradable: str = ""
    broken: str = ""  # grading itself failed, with this reason
    fresh: bool = True  # graded in this run

    @property
    def graded(self) -> bool:
        return not (self.ungradable or self.broken)


Progress = Callable[[Result, int, int], None]  # the result, how many are done, of how many


def grade_class(course: Course, topics: list[str], progress: Progress) -> list[Result]:
    """Grade what is new or changed, write gradebook, feedback and grades.csv; all results, sorted.

    Trouble where there is nothing to grade or nowhere to write.
    """
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)  # nbgrader logs what we report
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")
    for category in (DuplicateCellId, MissingIDFieldWarning):  # in submissions: they are repaired
        warnings.filterwarnings("ignore", category=category)
    submissions = [item for topic in topics for item in find_submissions(course, topic)]
    if not submissions:
        raise Trouble(
            f"There is nothing to grade in {course.submitted}: a submission is expected at "
            f"{course.submitted.name}/STUDENT/{topics[0]}/{topics[0]}.ipynb."
        )
    with explained_errors(course):
        course.prepare()
        present = {item.topic for item in submissions}
        for topic in topics:
            if topic in present:
                enter_assignment(course, topic)
        results = _grade_all(course, submissions, progress)
        with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
            write_csv(course.into / "grades.csv", grade_rows(gradebook))
    return sorted(results, key=lambda result: (result.topic, result.student))


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


def enter_assignment(course: Course, topic: str) -> None:
    """Enter the assignment, as its source stands, in the gradebook, with its due date."""
    release = course.release_notebook(topic)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        generate(course, topic, Path(scratch))
        made = (Path(scratch) / topic / release.name).read_bytes()
    if not release.is_file() or release.read_bytes() != made:
        raise Trouble(f"release/{topic} does not fit source/{topic}: run `make release` first.")
    due = course.due_date(topic)
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        if due and gradebook.find_assignment(topic).duedate is None:
            gradebook.update_or_create_assignment(topic, duedate=due)


@dataclass(frozen=True)
class _Work:
    """A submission that must be run: repaired, with the hashes that its record will carry."""

    submission: Submission
    notebook: NotebookNode
    files: dict[str, bytes]
    judge_hash: str
    repairs: list[str]

    def do(self, options: GradingOptions) -> Record:
        given = self.submission
        record = make_record(
            given.student, given.topic, self.notebook, self.files, self.judge_hash, options
        )
        record.repairs = self.repairs
        return record


def _grade_all(course: Course, submissions: list[Submission], progress: Progress) -> list[Result]:
    options = course.options()
    results: list[Result] = []

    def done(result: Result) -> None:
        results.append(result)
        progress(result, len(results), len(submissions))

    pool = ThreadPoolExecutor(options.workers or os.cpu_count() or 1)
    try:
        running: dict[Future[Record], _Work] = {}
        for submission in submissions:
            prepared = _prepare(course, submission)
            if isinstance(prepared, Result):
                done(prepared)
            elif isinstance(prepared, Record):
                done(_enter(course, submission, prepared, fresh=False))
            else:
                running[pool.submit(prepared.do, options)] = prepared
        for future in _as_they_end(running):
            work = running[future]
            done(_finish(course, work.submission, future))
    finally:
        pool.shutdown(cancel_futures=True)  # where one error ends the run, no other is begun
    return results


def _as_they_end(running: Iterable[Future[Record]]) -> Iterable[Future[Record]]:
    waiting = set(running)
    while waiting:
        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from ended


def _prepare(course: Course, submission: Submission) -> Result | Record | _Work:
    """What is to be done about a submission: nothing more, enter its record again, or run it."""
    try:
        submitted = read_submission(submission)
    except Ungradable as reason:
        _withdraw(course, submission)
        return Result(submission.student, submission.topic, ungradable=str(reason))
    release = read_notebook(course.release_notebook(submission.topic))
    notebook, repairs = repair(submitted, release)
    files = files_beside(submission)
    judge_hash = hash_of_judge(submission.topic, release)
    record = load_record(course.records, submission.topic, submission.student)
    if record and record.fits(hash_of_notebook(notebook), hash_of_files(files), judge_hash):
        return record
    return _Work(submission, notebook, files, judge_hash, repairs)


def _finish(course: Course, submission: Submission, future: Future[Record]) -> Result:
    """Keep the record and enter it; where running failed, say so and go on with the others."""
    error = future.exception()
    if error is not None:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise error
        return Result(submission.student, submission.topic, broken=reason)
    record = future.result()
    save_record(course.records, record)
    return _enter(course, submission, record, fresh=True)


def _enter(course: Course, submission: Submission, record: Record, fresh: bool) -> Result:
    """Write a record to the gradebook and the feedback, unless both hold it already."""
    if fresh or not _is_entered(course, submission):
        trouble = _run_nbgrader(course, submission)
        if trouble:
            return Result(submission.student, submission.topic, broken=trouble)
    return _result(course, submission, record, fresh)


def _is_entered(course: Course, submission: Submission) -> bool:
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
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
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


def _timestamp(submission: Submission) -> object:
    file = submission.folder / "timestamp.txt"
    try:
        return parse_utc(file.read_text().strip()) if file.is_file() else None
    except (ValueError, OSError):
        return None


def _run_nbgrader(course: Course, submission: Submission) -> str:
    """nbgrader's autograde and generate_feedback for one submission; what failed, or nothing."""
    api = NbGraderAPI(config=course.config())
    for step in (api.autograde, api.generate_feedback):
        outcome = step(submission.topic, submission.student, force=True)
        if not outcome["success"]:
            log = outcome.get("log", "") + outcome.get("error", "")
            if "disk is full" in log or "No space left" in log:
                raise OSError(errno.ENOSPC, "No space left on device")
            return f"nbgrader failed: {reason_in(outcome)}"
    return ""


def _withdraw(course: Course, submission: Submission) -> None:
    """Take away what an earlier, gradable version of a submission left."""
    for step in ("autograded", "feedback"):
        shutil.rmtree(
            course.into / step / submission.student / submission.topic, ignore_errors=True
        )
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        try:
            gradebook.remove_submission(submission.topic, submission.student)
        except MissingEntry:
            return


def _result(course: Course, submission: Submission, record: Record, fresh: bool) -> Result:
    wrong = [
        f"{verdict.exercise}: {verdict.diagnosis or 'wrong values'}"
        for verdict in record.verdicts
        if not verdict.passed
    ]
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        entered = gradebook.find_submission(submission.topic, submission.student)
        late = entered.total_seconds_late
        waiting = sum(
            grade.max_score
            for notebook in entered.notebooks
            for grade in notebook.grades
            if grade.needs_manual_grade
        )
        result = Result(
            submission.student,
            submission.topic,
            points=entered.score,
            max_points=entered.max_score,
            by_hand=waiting,
            notes=wrong + record.repairs + record.troubles,
            fresh=fresh,
        )
    if late > 0:
        result.notes.append(f"late by {timedelta(seconds=round(late))}")
    return result
