"""From `source/` to `release/`: nbgrader's student version, the public cases, the student side."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.reader import NotJSONError
from nbgrader.apps import NbGraderAPI

from autograder.build.bundle import BUNDLE_FILE, bundle
from autograder.build.cases import build_public_cases
from autograder.course import Course, Trouble, check_id
from autograder.exercises import TOPICS
from autograder.student.check import CASES_FILE


def build_release(course: Course, topic: str, target: Path, database: bool = True) -> None:
    """Make the student's folder of `topic` anew at `target`.

    With `database` the assignment is entered in the course's gradebook too.
    Trouble where the source does not fit the exercises, or nbgrader refuses it.
    """
    check_source(read_notebook(course.source_notebook(topic)), topic)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        generate(course, topic, Path(scratch), database)
        made = Path(scratch) / topic
        (made / CASES_FILE).write_bytes(build_public_cases(TOPICS[topic]).to_bytes())
        (made / BUNDLE_FILE).write_text(bundle(), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, target)


def generate(course: Course, topic: str, folder: Path, database: bool = True) -> None:
    """nbgrader's generate_assignment into `folder`/`topic`."""
    config = course.config()
    config.CourseDirectory.release_directory = str(folder)
    config.GenerateAssignment.no_database = not database
    config.SaveCells.enabled = database
    if database:
        course.prepare()
    api = NbGraderAPI(config=config)
    result = api.generate_assignment(topic, force=True, create=True)
    if not result["success"]:
        raise Trouble(f"nbgrader could not generate {topic}: {reason_in(result)}")


def reason_in(result: dict[str, Any]) -> str:
    """Why nbgrader did not succeed: the last exception's line in what it logged."""
    log = result.get("log", "") + result.get("error", "")
    found = re.findall(r"^\s*(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Entry)\b.*", log, re.MULTILINE)
    raised: list[str] = [line.strip() for line in found if "above traceback" not in line]
    return raised[-1] if raised else log[-300:].strip()


def check_source(notebook: NotebookNode, topic: str) -> None:
    """Trouble where the checks of a source notebook are not those of the topic's exercises."""
    checks = [
        cell.metadata.nbgrader
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code"
    ]
    points = {given.grade_id: given.get("points") for given in checks}
    wanted = {check_id(exercise.id): exercise for exercise in TOPICS[topic].exercises}
    if points.keys() != wanted.keys():
        odd = ", ".join(sorted(points.keys() ^ wanted.keys()))
        raise Trouble(f"source/{topic}: check cells and exercises differ in {odd}.")
    for name, exercise in wanted.items():
        if sum(given.grade_id == name for given in checks) > 1:
            raise Trouble(f"source/{topic}: {name} is there twice.")
        if points[name] != exercise.points:
            gives = "no" if points[name] is None else f"{points[name]:g}"
            raise Trouble(
                f"source/{topic}: {name} gives {gives} points, the exercise has "
                f"{exercise.points:g}. Points are set in autograder/exercises; change both."
            )


def read_notebook(path: Path) -> NotebookNode:
    if not path.is_file():
        raise Trouble(f"{path} is missing.")
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)
    except NotJSONError as error:
        raise Trouble(f"{path} is no notebook: it is not JSON.") from error
    return notebook
