"""What several test files share: a course of their own to work in, and the class graded in it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

# Before torch is imported: the threads of two test processes would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from autograder.build.release import build_release, read_notebook
from autograder.course import Course
from autograder.sample import Sample, load_samples, make_class

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "01_self_attention"

Command = Callable[..., subprocess.CompletedProcess]


def run_command(*command: object, cwd: Path, seconds: int = 300) -> subprocess.CompletedProcess:
    """A command that knows nothing of the tests it is run from."""
    ours = ("PYTEST", "COV_", "COVERAGE")
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if not name.startswith(ours)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


@pytest.fixture(scope="session")
def python() -> Command:
    """`python(*arguments, cwd=...)`"""
    return lambda *given, **options: run_command(sys.executable, *given, **options)


@pytest.fixture(scope="session")
def autograder() -> Command:
    """`autograder(*arguments, cwd=...)`: the command, as a person starts it."""
    program = Path(sys.executable).with_name("autograder")
    return lambda *given, **options: run_command(program, *given, **options)


def make_course(root: Path) -> Course:
    """A copy of the course, with the release of one topic made from its source."""
    for name in ("source", "examples", "solutions", "notebooks", "release"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "nbgrader_config.py", root)
    made = Course.at(root)
    build_release(made, TOPIC, root / "release" / TOPIC, database=False)
    return made


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """For reading only."""
    return make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def own_course(course: Course, tmp_path: Path) -> Course:
    """A course that a test may change."""
    shutil.copytree(course.root, tmp_path / "course")
    return Course.at(tmp_path / "course")


@pytest.fixture
def release(course: Course) -> NotebookNode:
    return read_notebook(course.release_notebook(TOPIC))


@dataclass(frozen=True)
class GradedClass:
    """The sample class after `autograder grade`, and what the command said."""

    course: Course
    said: subprocess.CompletedProcess
    samples: list[Sample]

    def copy(self, folder: Path, *students: str) -> Course:
        """The submissions of some students, with all results, for a test that changes them."""
        for student in students:
            shutil.copytree(self.course.submitted / student, folder / "submitted" / student)
        shutil.copytree(self.course.into, folder / "results")
        return replace(self.course, submitted=folder / "submitted", into=folder / "results")


@pytest.fixture(scope="session")
def graded_class(
    autograder: Command, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> GradedClass:
    """Graded once, whichever of the processes of pytest -n comes first; the others wait."""
    place = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        place = place.parent
    folder, said = place / "class", place / "class.json"
    course = Course.at(folder / "course", folder / "submitted", folder / "results")
    with (place / "class.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            make_course(course.root)
            make_class(course.root, course.submitted, [TOPIC])
            folders = ("--submitted", course.submitted, "--into", course.into)
            ended = autograder("grade", TOPIC, *folders, cwd=course.root)
            said.write_text(json.dumps([ended.args, ended.returncode, ended.stdout, ended.stderr]))
    ending = subprocess.CompletedProcess(*json.loads(said.read_text()))
    samples = [sample for sample in load_samples(course.root) if sample.topic == TOPIC]
    return GradedClass(course, ending, samples)


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
