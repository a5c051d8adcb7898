"""From `source/` to `release/`: nbgrader's student version, the public cases, the student side."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
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
    if database:
        course.prepare()
    api = NbGraderAPI(config=config)
    result = api.generate_assignment(topic, force=True, create=True)
    if not result["success"]:
        raise Trouble(f"nbgrader could not generate {topic}:\n{result.get('log', '')}")


def check_source(notebook: NotebookNode, topic: str) -> None:
    """Trouble where the checks of a source notebook are not those of the topic's exercises."""
    given = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code"
    }
    wanted = {check_id(exercise.id): exercise for exercise in TOPICS[topic].exercises}
    if given.keys() != wanted.keys():
        odd = ", ".join(sorted(given.keys() ^ wanted.keys()))
        raise Trouble(f"source/{topic}: check cells and exercises differ in {odd}.")
    for name, exercise in wanted.items():
        points = given[name].metadata.nbgrader.points
        if points != exercise.points:
            raise Trouble(
                f"source/{topic}: {name} gives {points:g} points, the exercise has "
                f"{exercise.points:g}. Points are set in autograder/exercises; change both."
            )


def read_notebook(path: Path) -> NotebookNode:
    if not path.is_file():
        raise Trouble(f"{path} is missing.")
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook
