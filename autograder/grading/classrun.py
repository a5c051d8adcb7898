"""Grading a class: every submission ends in points or in a named reason, whatever the others do."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import logging
import os
import resource
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TypeVar

from nbformat import NotebookNode
from nbformat.warnings import DuplicateCellId, MissingIDFieldWarning
from nbgrader.api import Gradebook
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from autograder.course import Course, GradingOptions, Trouble, usable_cores
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
from autograder.grading.hashes import Assignment, Hashes
from autograder.grading.judging import (
    SecretCases,
    judge_again,
    limits_of,
    make_record,
)
from autograder.grading.records import (
    PROPOSED,
    Record,
    adopt_proposed,
    load_refusals,
    record_path,
    save_record,
    save_refusals,
    stored_records,
)
from autograder.grading.submissions import (
    Submission,
    Ungradable,
    find_submissions,
    prepared,
    stray_entries,
)
from autograder.runner.flags import Flag
from autograder.runner.kernels import stop_kernels, the_nursery
from autograder.runner.notebook import Turn
from autograder.runner.sandbox import require_sandbox
from autograder.student.cases import sound_text
from autograder.student.verdicts import points_text


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
    flags: list[Flag] = field(default_factory=list)
    fresh: bool = True  # graded in this run
    judged_again: bool = False  # in this run, from the answers of an earlier one
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
    if not course.submitted.is_dir():
        raise Trouble(
            f"There is no folder {course.submitted}. Submissions are expected there, as "
            f"STUDENT/{topics[0]}/{topics[0]}.ipynb; another folder is named with --submitted."
        )
    if not submissions:
        raise Trouble(
            f"There is nothing to grade in {course.submitted}: a submission is expected at "
            f"{course.submitted.name}/STUDENT/{topics[0]}/{topics[0]}.ipynb."
        )
    options = course.options()
    options.sandbox = options.sandbox and sandbox
    if options.sandbox:
        require_sandbox()
    _allow_open_files()
    with explained_errors(course):
        course.prepare()
    with explained_errors(course), _alone_in(course.into):
        present = {item.topic for item in submissions}
        for topic in topics:
            if topic in present:
                enter_assignment(course, topic)
        with open_gradebook(course) as gradebook, _stopped_by_ctrl_c(), _seldom_swept():
            results = _grade_all(course, gradebook, submissions, options, progress)
        for topic in topics:
            refused = {
                item.student: item.ungradable or (item.broken and f"grading failed: {item.broken}")
                for item in results
                if item.topic == topic
            }
            save_refusals(course.refusals, topic, {who: why for who, why in refused.items() if why})
        strays = stray_entries(course, TOPICS, topics)
        results += [Result(student, name, ungradable=why) for student, name, why in strays]
        write_grades(course)
    return sorted(results, key=lambda result: (result.topic, result.student))


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Trouble where another run grades into it: each would run what the other does, and write over
    it. The lock ends with the process, however that ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise Trouble(
            f"Another run is grading into {folder} at this moment: wait until it has ended, or "
            "name another folder with --into."
        ) from None
    except OSError:  # a file system that knows no locks
        pass
    try:
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the kernels at once, and with them the run: also where the exception comes to
    Python in a place that lets none out."""

    def stop(number: int, frame: FrameType | None) -> None:
        stop_kernels()
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before in (None, signal.SIG_IGN):  # Ctrl-C is somebody else's, or nobody's
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _seldom_swept() -> Iterator[None]:
    """What lives by now stays for the run: Python does not look through it for rubbish again and
    again, and for the rest not after every 700 objects."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(5000, 10, 10)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _allow_open_files() -> None:
    """As many as this process may have: each kernel takes some thirty, and a terminal's usual
    limit is lower than what is allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True)
class _Work:
    """A submission, repaired; with a record of just that, or one that can be judged again, where
    there is one."""

    submission: Submission
    notebook: NotebookNode
    files: dict[str, bytes]
    hashes: Hashes
    repairs: list[str]
    record: Record | None = None
    proposed: bool = False  # the record: no gradebook knows of it yet
    earlier: Record | None = None

    def do(self, options: GradingOptions, drawn: SecretCases, turn: Turn) -> tuple[Record, bool]:
        """Its record, and whether that is from an earlier run's answers."""
        given = self.submission
        record = None
        if self.earlier is not None:
            cases = drawn.of(given.topic, self.earlier.seed)
            record = judge_again(self.earlier, cases, self.hashes)
        if record is not None:
            return replace(record, repairs=self.repairs), True
        record = make_record(
            given.student,
            given.topic,
            deepcopy(self.notebook),
            self.files,
            self.hashes,
            options,
            drawn,
            turn=turn,
        )
        record.repairs = self.repairs
        return record, False


AHEAD = 2  # submissions that wait, read and repaired, so that no worker waits
COMMIT_EVERY = 1.0  # seconds: what a killed run did since then is entered again from its records


def _grade_all(
    course: Course,
    gradebook: Gradebook,
    submissions: list[Submission],
    options: GradingOptions,
    progress: Progress,
) -> list[Result]:
    drawn = SecretCases()
    assignments = {name: Assignment.of(course, name) for name in {s.topic for s in submissions}}
    results: list[Result] = []
    committed = time.monotonic()

    def done(result: Result) -> None:
        nonlocal committed
        if time.monotonic() - committed > COMMIT_EVERY:
            gradebook.db.commit()
            committed = time.monotonic()
        results.append(result)
        progress(result, len(results), len(submissions))

    workers = options.workers or usable_cores()
    turn = threading.BoundedSemaphore(workers)
    pool = ThreadPoolExecutor(workers + 1)  # one more starts or ends its kernel meanwhile
    running: dict[Future[tuple[Record, bool]], _Work] = {}

    def finish_some(most: int) -> None:
        """Enter what has ended, until no more than so many are running or waiting."""
        while len(running) > most:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                work = running.pop(future)
                done(_guarded(_finish, course, gradebook, work.submission, work, future))

    try:
        if options.sandbox and _has_news(course, submissions):
            the_nursery()  # it warms up while the first submissions are read
        for submission in submissions:
            assignment = assignments[submission.topic]
            ready = _guarded(_prepare, course, gradebook, submission, options, assignment)
            if isinstance(ready, Result):
                done(ready)
            elif ready.record is not None:
                done(_guarded(_enter_kept, course, gradebook, submission, ready))
            else:
                running[pool.submit(ready.do, options, drawn, turn)] = ready
            finish_some(workers + 1 + AHEAD)
        finish_some(0)
        gradebook.db.commit()
    finally:
        pool.shutdown(cancel_futures=True)  # where one error ends the run, no other is begun
    return results


def _has_news(course: Course, submissions: list[Submission]) -> bool:
    """Whether one is there of which nothing is known."""
    refused = load_refusals(course.refusals)
    return any(
        (item.topic, item.student) not in refused
        and not record_path(course.records, item.topic, item.student).is_file()
        for item in submissions
    )


def _prepare(
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    options: GradingOptions,
    assignment: Assignment,
) -> Result | _Work:
    """Read and repair a submission, and look for its record; a result where it cannot be graded."""
    try:
        notebook, files, notes = prepared(submission, assignment.release)
    except Ungradable as reason:
        withdraw(course, gradebook, submission)
        return Result(sound_text(submission.student), submission.topic, ungradable=str(reason))
    hashes = Hashes.of(notebook, files, assignment)
    work = _Work(submission, notebook, files, hashes, notes)
    sandbox, limits = options.sandbox, limits_of(options)
    stored = stored_records(course.records, submission.topic, submission.student)
    for record, proposed in stored:
        if record.fits(hashes, sandbox, limits):
            return replace(work, record=record, proposed=proposed)
    for record, _ in stored:
        if record.can_be_judged_again(hashes, sandbox, limits):
            return replace(work, earlier=record)
    return work


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
    future: Future[tuple[Record, bool]],
) -> Result:
    record, judged_again = future.result()
    save_record(course.records / PROPOSED if course.rehearses else course.records, record)
    result = _enter(course, gradebook, submission, work, record, fresh=True)
    return replace(result, fresh=not judged_again, judged_again=judged_again)


def _enter_kept(
    course: Course, gradebook: Gradebook, submission: Submission, work: _Work
) -> Result:
    assert work.record is not None
    adopted = work.proposed and not course.rehearses
    if adopted:
        adopt_proposed(course.records, work.record)
    return _enter(course, gradebook, submission, work, work.record, fresh=adopted)


def _enter(
    course: Course,
    gradebook: Gradebook,
    submission: Submission,
    work: _Work,
    record: Record,
    fresh: bool,
) -> Result:
    """Write a record to the gradebook and the feedback, unless both hold it already."""
    put_back = not fresh and not is_entered(course, gradebook, submission, record)
    if fresh or put_back:
        try:
            with gradebook.db.begin_nested():
                entered = enter(course, gradebook, submission, record, work.files)
                write_page(course, entered, record.executed, notes_of(record))
        except Exception:
            gradebook.db.expire_all()
            raise
    result = _result(gradebook, submission, record, fresh)
    if put_back:
        result.notes.append("entered again: gradebook, lateness or feedback did not fit the record")
    return result


def _result(gradebook: Gradebook, submission: Submission, record: Record, fresh: bool) -> Result:
    wrong = [
        f"{verdict.exercise}: {verdict.diagnosis or 'wrong values'}"
        for verdict in record.verdicts
        if not verdict.passed
    ]
    entered = standing(gradebook, submission)
    taken = f": {points_text(entered.penalty)} points taken off" if entered.penalty else ""
    notes = wrong + record.repairs + record.troubles
    notes += [f"late by {entered.late}{taken}"] if entered.late else []
    notes += [f"points by hand of an earlier answer: {name}" for name in entered.again]
    return Result(
        submission.student,
        submission.topic,
        points=entered.points,
        max_points=entered.max_points,
        by_hand=entered.by_hand,
        notes=notes,
        flags=record.flags,
        sandboxed=record.sandboxed,
        fresh=fresh,
    )
