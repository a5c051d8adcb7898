"""What a person gave by hand: kept while a submission cannot be graded, given back when it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, SubmittedAssignment

from autograder.grading.records import WITHDRAWN, record_path, write_whole


def keep(records: Path, entered: SubmittedAssignment) -> None:
    """Write down points, extra credit and comments by hand, where there are some."""
    given: dict[str, dict[str, Any]] = {"points": {}, "extra": {}, "comments": {}}
    for notebook in entered.notebooks:
        given["points"] |= _of(notebook.grades, "manual_score")
        given["extra"] |= _of(notebook.grades, "extra_credit")
        given["comments"] |= _of(notebook.comments, "manual_comment")
    if any(given.values()):
        write_whole(_place(records, entered), json.dumps(given, indent=1))
    else:  # what was kept before was taken back since
        _place(records, entered).unlink(missing_ok=True)


def give_back(records: Path, entered: SubmittedAssignment) -> None:
    """Enter again what was kept, in a submission that nothing was given to since."""
    try:
        given = json.loads(_place(records, entered).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for notebook in entered.notebooks:
        for grade in notebook.grades:
            grade.manual_score = given["points"].get(grade.name)
            grade.extra_credit = given["extra"].get(grade.name)
        for comment in notebook.comments:
            comment.manual_comment = given["comments"].get(comment.name)


def to_look_at_again(grades: list[Grade]) -> list[str]:
    """The cells whose points by hand were given to an earlier answer."""
    return [
        str(grade.name)
        for grade in grades
        if grade.needs_manual_grade and grade.manual_score is not None
    ]


def _of(rows: list[Any], what: str) -> dict[str, Any]:
    found = {str(row.name): getattr(row, what) for row in rows}
    return {name: value for name, value in found.items() if value not in (None, "")}


def _place(records: Path, entered: SubmittedAssignment) -> Path:
    record = record_path(records / WITHDRAWN, str(entered.name), str(entered.student.id))
    return record.with_name(f"{entered.student.id}.by-hand")
