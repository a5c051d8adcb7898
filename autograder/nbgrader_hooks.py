"""What nbgrader calls: the preprocessors and the exporter named in nbgrader_config.py."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Unicode

from autograder.build.release import read_notebook
from autograder.course import Course, GradingOptions, check_id
from autograder.grading.hashes import Assignment, Hashes
from autograder.grading.judging import SecretCases, judge_again, limits_of, make_record
from autograder.grading.records import Record, load_record, save_record
from autograder.grading.safe import safe_to_show
from autograder.grading.submissions import Submission, files_beside, repair
from autograder.runner.sandbox import require_sandbox
from autograder.student.verdicts import Verdict

Processed = tuple[NotebookNode, dict[str, Any]]
# Of each run of nbgrader's: one drawing for a class, and another each time that the button in
# formgrader is pressed, whose server may live for weeks.
_drawn: WeakKeyDictionary[object, SecretCases] = WeakKeyDictionary()


class Repair(NbGraderPreprocessor):
    """Puts right what a student may not change; in place of nbgrader's own cell by cell repairs,
    which one copied cell or one empty metadata brings down."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Processed:
        release = read_notebook(_course(self).release_notebook(resources["nbgrader"]["assignment"]))
        notebook, notes = repair(nb, release)
        for note in notes:
            self.log.warning(note)
        return notebook, resources


class JudgedExecute(NbGraderPreprocessor):
    """Runs a notebook beside the judge; or takes the record of just that, where there is one, or
    judges its answers again, as `autograder grade` does."""

    records = Unicode("verdicts", help="Folder of the verdict records.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Processed:
        given = resources["nbgrader"]
        record = self._record(nb, given["student"], given["assignment"])
        resources["verdicts"] = {check_id(item.exercise): item for item in record.verdicts}
        return record.executed, resources

    def _record(self, notebook: NotebookNode, student: str, topic: str) -> Record:
        course = _course(self)
        records = course.root / self.records
        submission = Submission(student, topic, course.submitted / student / topic)
        files, refused = files_beside(submission)
        for note in refused:
            self.log.warning(note)
        hashes = Hashes.of(notebook, files, Assignment.of(course, topic))
        options = GradingOptions(config=self.config)
        drawn = _drawn.setdefault(self.parent.parent, SecretCases())
        stands = hashes, options.sandbox, limits_of(options)
        kept = load_record(records, topic, student)
        if kept and kept.fits(*stands):
            return kept
        record = None
        if kept and kept.can_be_judged_again(*stands):
            record = judge_again(kept, drawn.of(topic, kept.seed), hashes)
        if record is None:
            if options.sandbox:
                require_sandbox()
            record = make_record(student, topic, notebook, files, hashes, options, drawn)
        save_record(records, record)
        return record


class SaveVerdicts(SaveAutoGrades):
    """Writes the judge's verdicts as scores; a cell's outputs decide nothing."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._add_score(cell, resources)
        if cell.cell_type != "code":
            return
        name = cell.metadata.nbgrader.grade_id
        given = resources["nbgrader"]
        grade = self.gradebook.find_grade(
            name, given["notebook"], given["assignment"], given["student"]
        )
        verdict: Verdict | None = resources["verdicts"].get(name)
        grade.auto_score = 0.0 if verdict is None else verdict.points
        grade.needs_manual_grade = grade.manual_score is not None
        self.gradebook.db.commit()


class SafeToShow(NbGraderPreprocessor):
    """Takes out of the graded notebook what formgrader's page of it would run."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Processed:
        return safe_to_show(nb), resources


class QuotedCsv(ExportPlugin):
    """Grades as CSV, with every field quoted where it must be (nbgrader's own are not)."""

    def export(self, gradebook: Gradebook) -> None:
        target = Path(self.to or "grades.csv")
        rows = [
            row
            for row in grade_rows(gradebook)
            if (not self.assignment or row["assignment"] in self.assignment)
            and (not self.student or row["student_id"] in self.student)
        ]
        write_csv(target, rows)
        self.log.info("Grades of %d submissions written to %s", len(rows), target)


FIELDS = [
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "needs_manual_grade",
]


def write_csv(target: Path, rows: list[dict[str, Any]], fields: list[str] | None = None) -> None:
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields or FIELDS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({name: as_text(value) for name, value in row.items()} for row in rows)


def as_text(value: Any) -> Any:
    """With an apostrophe before what a spreadsheet would take for a formula, such as `=cmd`."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if formula else value


def grade_rows(gradebook: Gradebook) -> list[dict[str, Any]]:
    """A row for each student and assignment, with nbgrader's columns."""
    rows = []
    for assignment in gradebook.assignments:
        for student in sorted(gradebook.students, key=lambda student: str(student.id)):
            row = dict.fromkeys(FIELDS, "")
            row |= {
                "assignment": assignment.name,
                "duedate": assignment.duedate or "",
                "student_id": student.id,
                "last_name": student.last_name or "",
                "first_name": student.first_name or "",
                "email": student.email or "",
                "max_score": assignment.max_score,
            }
            rows.append(row | _scores(gradebook, assignment.name, student.id))
    return rows


def _scores(gradebook: Gradebook, assignment: str, student: str) -> dict[str, Any]:
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        nothing = {"raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
        return nothing | {"not_graded": "nothing was handed in"}
    penalty = submission.late_submission_penalty or 0.0
    return {
        "timestamp": submission.timestamp or "",
        "raw_score": submission.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, submission.score - penalty),
        "needs_manual_grade": "yes" if submission.needs_manual_grade else "",
    }


def _course(preprocessor: NbGraderPreprocessor) -> Course:
    """The folders that nbgrader works with: preprocessor, exporter, converter, course directory."""
    directory = preprocessor.parent.parent.coursedir
    root = Path(directory.root)
    return Course.at(root, root / directory.submitted_directory)
