"""Grading on trial: what the gradebook would say, before it is written."""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course import Course
from autograder.grading.classrun import Progress, Result, grade_class
from autograder.grading.gradebook import explained_errors, open_gradebook

_Key = tuple[str, str, str]  # student, topic, grade_id
_Points = dict[_Key, float | None]
PENALTY, IN_ALL = "late penalty", "in all"


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
    return results, list(_changes(before, after))


def _changes(before: _Points, after: _Points) -> Iterator[Change]:
    """Cell by cell, and in all for each submission of which some cell changes."""
    keys = sorted(before.keys() | after.keys())
    for (student, topic), cells in itertools.groupby(keys, key=lambda key: key[:2]):
        named = list(cells)
        changed = [key for key in named if before.get(key) != after.get(key)]
        for key in changed:
            yield Change(*key, before.get(key), after.get(key))
        if changed:
            sums = (_sum_of(points, named) for points in (before, after))
            yield Change(student, topic, IN_ALL, *sums)


def _sum_of(points: _Points, keys: list[_Key]) -> float | None:
    given = [points[key] for key in keys if key in points]
    return max(0.0, sum(value or 0.0 for value in given)) if given else None


def _copy(source: Path, target: Path) -> None:
    """As the database stands, whoever else has it open."""
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def _points_in(course: Course, topics: list[str]) -> _Points:
    """The points of each cell that has some, and what is taken off for being late."""
    found: _Points = {}
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
