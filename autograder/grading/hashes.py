"""Hashes of what decides a verdict: of the submission, of the cases, and of the code."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from nbformat import NotebookNode

import autograder
import solutions
from autograder.build.release import read_notebook
from autograder.course import Course
from autograder.exercises import TOPICS
from autograder.grading.submissions import hash_of_notebook
from autograder.student.cases import CaseSet, to_data
from autograder.student.tensors import pack

# What decides nothing of what an answer is asked, or gives.
_ONLY_JUDGING = ("judge.py", "verdicts.py")


@dataclass(frozen=True)
class Assignment:
    """A topic's release, with the hashes of the code that a grading of it runs through: `run` by
    which answers come about, `judge` of that and of all that decides what they are worth."""

    release: NotebookNode
    run: str
    judge: str

    @classmethod
    def of(cls, course: Course, topic: str) -> Assignment:
        release = read_notebook(course.release_notebook(topic))
        return cls(release, hash_of_run(topic, release), hash_of_judge(topic, release))


@dataclass(frozen=True)
class Hashes:
    """What went into a grading: where all are the same, it would come out the same, but for the
    seed."""

    notebook: str  # repaired
    files: str  # beside it
    run: str
    judge: str

    @classmethod
    def of(cls, notebook: NotebookNode, files: dict[str, bytes], assignment: Assignment) -> Hashes:
        return cls(
            hash_of_notebook(notebook), hash_of_files(files), assignment.run, assignment.judge
        )


def hash_of_files(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def hash_of_run(topic: str, release: NotebookNode) -> str:
    """Of the code that puts questions and evaluates answers, the assignment, and torch."""
    package = Path(autograder.__file__).parent
    student = [path for path in package.glob("student/*.py") if path.name not in _ONLY_JUDGING]
    return _hash(topic, release, [*student, *package.glob("runner/*.py")])


def hash_of_judge(topic: str, release: NotebookNode) -> str:
    """Of all that decides a verdict on our side: the code, this topic's exercises and references,
    the assignment, torch."""
    package = Path(autograder.__file__).parent
    parts = [*package.glob("student/*.py"), *package.glob("runner/*.py")]
    parts += [package / "build" / "cases.py", *modules_of(topic)]
    return _hash(topic, release, parts)


def _hash(topic: str, release: NotebookNode, files: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{torch.__version__} {topic} {hash_of_notebook(release)}".encode())
    # By folder and name alone: where the packages are installed changes nothing.
    for path in sorted(files, key=lambda path: path.parts[-2:]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def modules_of(topic: str) -> list[Path]:
    """The module that poses a topic's exercises, and all that it imports of the exercises and the
    references: a change in another topic's concerns it only where it builds on that."""
    roots = {
        "autograder": Path(autograder.__file__).parent,
        "solutions": Path(solutions.__file__).parent,
    }

    def file_of(name: str) -> Path | None:
        package, *rest = name.split(".")
        if not rest or not name.startswith(("autograder.exercises.", "solutions.")):
            return None
        path = roots[package].joinpath(*rest).with_suffix(".py")
        return path if path.is_file() else None

    first = file_of(TOPICS[topic].exercises[0].cases.__module__)
    waiting, found = [first], []
    while waiting:
        path = waiting.pop()
        if path is None or path in found:
            continue
        found.append(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting.append(file_of(node.module))
                waiting += [file_of(f"{node.module}.{alias.name}") for alias in node.names]
            elif isinstance(node, ast.Import):
                waiting += [file_of(alias.name) for alias in node.names]
    return found


def hash_of_questions(cases: CaseSet) -> str:
    """Of what is asked, in order, and of the limits on asking it."""
    asked = {
        name: [cases.specs[name].time_limit, *cases.specs[name].banned]
        + [to_data(case.question) for case in given]
        for name, given in cases.cases.items()
    }
    return hashlib.sha256(pack(asked)).hexdigest()


def hash_of_cases(cases: CaseSet) -> str:
    return hashlib.sha256(cases.to_bytes()).hexdigest()
