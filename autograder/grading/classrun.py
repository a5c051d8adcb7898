"""Grading a class: every submission ends in points or in a named reason, whatever the others do."""

from __future__ import annotations

import errno
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeVar

from nbformat import NotebookNode
from nbformat.warnings import DuplicateCellId, MissingIDFieldWarning
from nbgrader.api import Gradebook
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from autograder.build.release import read_notebook
from autograder.course import Course, GradingOptions, Trouble
from autograder.exercises import TOPICS
from autograder.grading.feedback import notes_of, write_page
from autograder.grading.gradebook import (
    enter,
    enter_assignment,
    explained_errors,
    is_entered,
    open_gradebook,
    standing,
    withdraw,
    write_grades,
)
from autograder.grading.records import (
    Record,
    SecretCases,
    hash_of_files,
    hash_of_judge,
    load_record,
    make_record,
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
    stray_entries,
)
from autograder.runner.sandbox import require_sandbox
from autograder.student.cases import sound_text


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
    sandboxed: bool = True

    @property
    def graded(self) -> bool:
        return not (self.ungradable or self.broken)


Outcome = TypeVar("Outcome")
Progress = Callable[[Result, int, int], None]  # the result, how many are done, of how many


def grade_class(
    course: Course, topics: list[str], progress: Progress, sandbox: bool = True
) -> list[Result]:
    """Grade what is new or changed, write gradebook, feedback and grades.csv; all results, sorted.

    Trouble where there is nothing to grade, nowhere to write, or no sandbox, unless it is waived.
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
    options = course.options()
    options.sandbox = options.sandbox and sandbox
    if options.sandbox:
        require_sandbox()
    with explained_errors(course):
        course.prepare()
        present = {item.topic for item in submissions}
        for topic in topics:
            if topic in present:
                enter_assignment(course, topic)
        with open_gradebook(course) as gradebook:
            results = _grade_all(course, gradebook, submissions, options, progress)
        strays = stray_entries(course, TOPICS, topics)
        results += [Result(student, name, ungradable=why) for student, name, why in strays]
        write_grades(course)
    return sorted(results, key=lambda result: (result.topic, result.student))


@dataclass(frozen=True)
class _Work:
    """A submission, repaired; with the record of just that, where there is one."""

    submission: Submission
    notebook: NotebookNode
    files: dict[str, bytes]
    judge_hash: str
    repairs: list[str]
    record: Record | None

    def do(self, options: GradingOptions, drawn: SecretCases) -> Record:
        given = self.submission
        record = make_record(
            given.student,
            given.topic,
            deepcopy(self.notebook),
            self.files,
            self.judge_hash,
            options,
            drawn,
        )
        record.repairs = self.repairs
        return record


COMMIT_EVERY = 1.0  # seconds: what a killed run did since then is entered again from its records


def _grade_all(
    course: Course,
    gradebook: Gradebook,
    submissions: list[Submission],
    options: GradingOptions,
    progress: Progress,
) -> list[Result]:
    drawn = SecretCases()
    results: list[Result] = []
    committed = time.monotonic()

    def done(result: Result) -> None:
        nonlocal committed
        if time.monotonic() - committed > COMMIT_EVERY:
            gradebook.db.commit()
            committed = time.monotonic()
        results.append(result)
        progress(result, len(results), len(submissions))

    pool = ThreadPoolExecutor(options.workers or os.cpu_count() or 1)
    try:
        running: dict[Future[Record], _Work] = {}
        for submission in submissions:
            prepared = _guarded(_prepare, course, gradebook, submission, options)
            if isinstance(prepared, Result):
                done(prepared)
            elif prepared.record is not None:
                record = prepared.record
                done(_guarded(_enter, course, gradebook, submission, prepared, record, False))
            else:
                running[pool.submit(prepared.do, options, drawn)] = prepared
        for future in _as_they_end(running):
            work = running[future]
            done(_guarded(_finish, course, gradebook, work.submission, work, future))
        gradebook.db.commit()
    finally:
        pool.shutdown(cancel_futures=True)  # where one error ends the run, no other is begun
    return results


def _as_they_end(running: Iterable[Future[Record]]) -> Iterable[Future[Record]]:
    waiting = set(running)
    while waiting:
        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from ended


def _prepare(
    course: Course, gradebook: Gradebook, submission: Submission, options: GradingOptions
) -> Result | _Work:
    """Read and repair a submission, and look for its record; a result where it cannot be graded."""
    try:
        submitted = read_submission(submission)
        files = files_beside(submission)
    except Ungradable as reason:
        withdraw(course, gradebook, submission)
        return Result(sound_text(submission.student), submission.topic, ungradable=str(reason))
    release = read_notebook(course.release_notebook(submission.topic))
    notebook, repairs = repair(submitted, release)
    judge_hash = hash_of_judge(submission.topic, release)
    record = load_record(course.records, submission.topic, submission.student)
    hashes = (hash_of_notebook(notebook), hash_of_files(files), judge_hash)
    if record and not record.fits(*hashes, options.sandbox):
        record = None
    return _Work(submission, notebook, files, judge_hash, repairs, record)


def _guarded(
    step: Callable[..., Outcome],
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    *more: object,
) -> Outcome | Result:
    """One step for one submission. What is odd in it ends this submission alone; what is wrong
    with the disk or the database ends the run."""
    try:
        return step(course, gradebook, submission, *more)
    except (Trouble, SQLAlchemyError):
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return _broken(submission, error)
    except Exception as error:
        return _broken(submission, error)


def _broken(submission: Submission, error: Exception) -> Result:
    reason = f"{type(error).__name__}: {error}"
    return Result(sound_text(submission.student), submission.topic, broken=sound_text(reason))


def _finish(
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    work: _Work,
    future: Future[Record],
) -> Result:
    record = future.result()
    save_record(course.records, record)
    return _enter(course, gradebook, submission, work, record, fresh=True)


def _enter(
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    work: _Work,
    record: Record,
    fresh: bool,
) -> Result:
    """Write a record to the gradebook and the feedback, unless both hold it already."""
    if fresh or not is_entered(course, gradebook, submission, record):
        try:
            with gradebook.db.begin_nested():
                entered = enter(course, gradebook, submission, record, work.files)
                write_page(course, entered, record.executed, notes_of(record))
        except Exception:
            gradebook.db.expire_all()
            raise
    return _result(gradebook, submission, record, fresh)


def _result(gradebook: Gradebook, submission: Submission, record: Record, fresh: bool) -> Result:
    wrong = [
        f"{verdict.exercise}: {verdict.diagnosis or 'wrong values'}"
        for verdict in record.verdicts
        if not verdict.passed
    ]
    entered = standing(gradebook, submission)
    late = [f"late by {entered.late}"] if entered.late else []
    return Result(
        submission.student,
        submission.topic,
        points=entered.points,
        max_points=entered.max_points,
        by_hand=entered.by_hand,
        notes=wrong + record.repairs + record.troubles + late,
        sandboxed=record.sandboxed,
        fresh=fresh,
    )
