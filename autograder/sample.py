"""A sample class: real notebooks, made from the release with the answers in `examples/`."""

from __future__ import annotations

import ast
import math
import random
import shutil
import tomllib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.build.release import read_notebook
from autograder.course import Course, Trouble, check_id, grade_id_of
from autograder.exercises import TOPICS

WRITTEN = "What a student of the sample class writes here is for a person to read and to grade."
MARKER = ".sample-class"
ON_TIME, LATE = timedelta(days=-1), timedelta(hours=2, minutes=10)  # from the due date


@dataclass(frozen=True)
class Sample:
    """An entry of examples/TOPIC/class.toml: a submission, and how grading it must end."""

    topic: str
    student: str
    kind: str
    answers: str = ""
    twist: str = ""
    points: float = 0.0
    wrong: list[str] = field(default_factory=list)
    ungradable: str = ""


def load_samples(root: Path) -> list[Sample]:
    """The entries of examples/TOPIC/class.toml, topic by topic."""
    found = []
    for topic in TOPICS:
        path = root / "examples" / topic / "class.toml"
        if path.is_file():
            entries = tomllib.loads(path.read_text(encoding="utf-8"))["submission"]
            found += [Sample(topic, **entry) for entry in entries]
    return found


def make_class(
    root: Path, into: Path, topics: list[str], size: int | None = None, mix: str = ""
) -> int:
    """Write the submissions of the sample class; or, for load tests, of `size` invented students.

    `mix` gives the shares of the kinds, as "reference=3,unscaled=1" (default: all alike).
    How many submissions there are is returned.
    """
    samples = [sample for sample in load_samples(root) if sample.topic in topics]
    if mix and size is None:
        raise Trouble("--mix needs --size, the number of students.")
    if size is not None:
        samples = _enlarged(samples, size, mix)
    for topic in {sample.topic for sample in samples}:
        read_notebook(Course.at(root).release_notebook(topic))  # Trouble where it is missing
    _claim(into)
    try:
        (into / MARKER).write_text("A sample class lies here, and may be written over.\n")
        for sample in samples:
            write_submission(root, into, sample)
    except OSError as error:
        raise Trouble(f"Cannot write to {into}: {error.strerror or error}.") from error
    return len(samples)


def _claim(into: Path) -> None:
    """Trouble where `into` holds submissions of real students, which must not be overwritten."""
    try:
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()) and not (into / MARKER).exists():
            raise Trouble(f"{into} is not empty, and holds no sample class: name another folder.")
    except OSError as error:
        raise Trouble(f"Cannot write to {into}: {error.strerror or error}.") from error


def _enlarged(samples: list[Sample], size: int, mix: str) -> list[Sample]:
    shares = _shares(samples, mix)
    chooser = random.Random(0)
    made = []
    for topic in TOPICS:
        kinds = [sample for sample in samples if sample.topic == topic and shares[sample.kind] > 0]
        if not kinds:
            continue
        weights = [shares[sample.kind] for sample in kinds]
        chosen = chooser.choices(kinds, weights, k=size)
        made += [
            Sample(**{**vars(sample), "student": f"student-{number:04d}"})
            for number, sample in enumerate(chosen, start=1)
        ]
    return made


def _shares(samples: list[Sample], mix: str) -> dict[str, float]:
    kinds = {sample.kind for sample in samples}
    if not mix:
        return dict.fromkeys(kinds, 1.0)
    shares = dict.fromkeys(kinds, 0.0)
    for part in mix.split(","):
        kind, _, share = part.partition("=")
        try:
            shares[kind.strip()] += _positive(share or "1")
        except (KeyError, ValueError) as error:
            known = ", ".join(sorted(kinds))
            raise Trouble(f"--mix: {part!r} is not KIND=SHARE with a KIND of {known}.") from error
    return shares


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(f"{text} is no share")
    return number


def write_submission(root: Path, into: Path, sample: Sample) -> None:
    """One folder, as nbgrader's exchange would leave it: notebook, files, timestamp."""
    folder = into / sample.student / sample.topic
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(root / "release" / sample.topic, folder)
    release = read_notebook(folder / f"{sample.topic}.ipynb")
    notebook = TWISTS[sample.twist](fill(release, _answers(root, sample)), sample.topic)
    text = nbformat.writes(notebook) if isinstance(notebook, NotebookNode) else notebook
    (folder / f"{sample.topic}.ipynb").write_text(text, encoding="utf-8")
    if sample.twist == "renamed":
        (folder / f"{sample.topic}.ipynb").rename(folder / "final_version.ipynb")
    due = Course.at(root).due_date(sample.topic)
    if due:
        handed_in = due + (LATE if sample.twist == "late" else ON_TIME)
        (folder / "timestamp.txt").write_text(f"{handed_in:%Y-%m-%d %H:%M:%S} UTC\n")


def _answers(root: Path, sample: Sample) -> str:
    if not sample.answers:
        return ""
    inside = root / "examples" / sample.topic / sample.answers
    return (inside if inside.is_file() else root / sample.answers).read_text(encoding="utf-8")


def fill(release: NotebookNode, answers: str) -> NotebookNode:
    """The release with each function or class of `answers` in the cell of its name.

    What else the answers hold (imports, helpers) goes in a cell of its own before the first.
    """
    notebook = deepcopy(release)
    definitions, rest = _split(answers)
    cells = {grade_id_of(cell): cell for cell in notebook.cells}
    for name in definitions.keys() & cells.keys():
        cells[name].source = definitions[name]
    if rest:
        first = next(i for i, cell in enumerate(notebook.cells) if grade_id_of(cell) in definitions)
        notebook.cells.insert(first, new_code_cell(rest, id="imports-and-helpers"))
    if answers:
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = WRITTEN
    return notebook


def _split(answers: str) -> tuple[dict[str, str], str]:
    tree = ast.parse(answers)
    names = {exercise.id for topic in TOPICS.values() for exercise in topic.exercises}
    definitions, rest = {}, []
    for node in tree.body:
        text = _source_of(node, answers)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
            definitions[node.name] = text
        elif not (isinstance(node, ast.Expr) and node is tree.body[0]) and not _is_given(node):
            rest.append(text)
    return definitions, "\n".join(rest)


def _source_of(node: ast.stmt, source: str) -> str:
    """The lines of a statement, its decorators with it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(item.lineno for item in decorators)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _is_given(node: ast.stmt) -> bool:
    """An import from the references: what it brings is given in the notebook."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solutions")


def _as_it_is(notebook: NotebookNode, topic: str) -> NotebookNode:
    return notebook


def _without_a_check(notebook: NotebookNode, topic: str) -> NotebookNode:
    gone = check_id(TOPICS[topic].exercises[-2].id)
    notebook.cells = [cell for cell in notebook.cells if grade_id_of(cell) != gone]
    return notebook


def _with_a_copied_check(notebook: NotebookNode, topic: str) -> NotebookNode:
    name = check_id(TOPICS[topic].exercises[0].id)
    place = next(i for i, cell in enumerate(notebook.cells) if grade_id_of(cell) == name)
    copy = deepcopy(notebook.cells[place])
    copy.id = "copied-check"
    notebook.cells.insert(place + 1, copy)
    return notebook


def _cut_off(notebook: NotebookNode, topic: str) -> str:
    text: str = nbformat.writes(notebook)
    return text[: len(text) // 2]


TWISTS: dict[str, Callable[[NotebookNode, str], Any]] = {
    "": _as_it_is,
    "late": _as_it_is,
    "renamed": _as_it_is,
    "deleted-check": _without_a_check,
    "copied-check": _with_a_copied_check,
    "not-json": _cut_off,
}
