"""Grading on trial: what the gradebook would say, before it is written."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course import Course
from autograder.grading.classrun import Progress, Result, grade_class
from autograder.grading.gradebook import explained_errors, open_gradebook

_Key = tuple[str, str, str]  # student, topic, grade_id
PENALTY = "late penalty"


@dataclass(frozen=True)
class Change:
    """What would become of the points in one cell; None: there are none."""

    student: str
    topic: str
    cell: str
    before: float | None
    after: float | None


def rehearse(
    course: Course, topics: list[str], progress: Progress, sandbox: bool = True
) -> tuple[list[Result], list[Change]]:
    """Grade as `grade_class` does, into a copy of the gradebook that is thrown away; what would
    change. Records of what was run are kept as proposed, so that grading can take them."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as scratch:
        trial = replace(course, into=Path(scratch), records_at=course.records)
        with explained_errors(course):
            course.prepare()
            if course.gradebook.is_file():
                _copy(course.gradebook, trial.gradebook)
            before = _points_in(trial, topics)
        results = grade_class(trial, topics, progress, sandbox)
        after = _points_in(trial, topics)
    changes = [
        Change(*key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
    return results, changes


def _copy(source: Path, target: Path) -> None:
    """As the database stands, whoever else has it open."""
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def _points_in(course: Course, topics: list[str]) -> dict[_Key, float | None]:
    """The points of each cell that has some, and what is taken off for being late."""
    found: dict[_Key, float | None] = {}
    if not course.gradebook.is_file():
        return found
    with open_gradebook(course) as gradebook:
        for topic in topics:
            for submission in gradebook.assignment_submissions(topic):
                for notebook in submission.notebooks:
                    for grade in notebook.grades:
                        name = (submission.student.id, topic, grade.name)
                        waits = grade.auto_score is None and grade.manual_score is None
                        found[name] = None if waits else grade.score
                    if notebook.late_submission_penalty:
                        name = (submission.student.id, topic, PENALTY)
                        found[name] = -notebook.late_submission_penalty
    return found
