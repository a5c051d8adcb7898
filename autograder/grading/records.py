"""Verdict records: one JSON file a submission, from which its scores follow."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import nbformat
import torch
from nbformat import NotebookNode

import autograder
import solutions
from autograder.build.cases import build_cases, build_public_cases
from autograder.course import GradingOptions
from autograder.exercises import TOPICS
from autograder.grading.submissions import hash_of_notebook
from autograder.runner.notebook import RunLimits, run_notebook
from autograder.student.cases import CaseSet
from autograder.student.verdicts import Verdict

FORMAT = 1


@dataclass
class Record:
    """How one submission was judged: the hashes of what went in, the seed, what came out."""

    student: str
    topic: str
    notebook_hash: str  # of the repaired notebook
    files_hash: str  # of the files beside it
    judge_hash: str  # of the code, the cases' making and the assignment
    seed: int
    verdicts: list[Verdict]
    executed: NotebookNode
    repairs: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    sandboxed: bool = True
    seconds: float = 0.0

    @property
    def points(self) -> dict[str, float]:
        return {verdict.exercise: verdict.points for verdict in self.verdicts}

    def fits(self, notebook_hash: str, files_hash: str, judge_hash: str, sandbox: bool) -> bool:
        """Whether it would come out the same, but for the seed, if it were made again; one that
        was made without a sandbox does not stand for one with it."""
        mine = (self.notebook_hash, self.files_hash, self.judge_hash)
        same = mine == (notebook_hash, files_hash, judge_hash)
        return same and (self.sandboxed or not sandbox)


def make_record(
    student: str,
    topic: str,
    notebook: NotebookNode,
    files: dict[str, bytes],
    judge_hash: str,
    options: GradingOptions,
    drawn: SecretCases | None = None,
) -> Record:
    """Run a repaired notebook against secret cases (fresh ones, unless some were drawn for this
    run). Touches no database."""
    started = time.monotonic()
    hashes = (hash_of_notebook(notebook), hash_of_files(files), judge_hash)
    seed, secret = (drawn or SecretCases()).of(topic)
    run = run_notebook(
        notebook,
        secret,
        public_bytes(topic),
        RunLimits.of(options),
        files,
    )
    return Record(
        student,
        topic,
        *hashes,
        seed=seed,
        verdicts=run.verdicts(),
        executed=run.notebook,
        troubles=run.troubles,
        sandboxed=options.sandbox,
        seconds=round(time.monotonic() - started, 2),
    )


class SecretCases:
    """The secret cases of one grading run: the same for all of a class, drawn anew in each run."""

    def __init__(self) -> None:
        self._drawn: dict[str, tuple[int, CaseSet]] = {}
        self._lock = threading.Lock()

    def of(self, topic: str) -> tuple[int, CaseSet]:
        """The seed, and the cases that it gives."""
        with self._lock:
            if topic not in self._drawn:
                seed = secrets.randbits(48)
                self._drawn[topic] = seed, build_cases(TOPICS[topic], seed)
            return self._drawn[topic]


@cache
def public_bytes(topic: str) -> bytes:
    return build_public_cases(TOPICS[topic]).to_bytes()


def record_path(records: Path, topic: str, student: str) -> Path:
    return records / topic / f"{student}.json"


def save_record(records: Path, record: Record) -> None:
    """Written whole or not at all: a run that is killed leaves no half of one."""
    path = record_path(records, record.topic, record.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = asdict(record) | {"format": FORMAT}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1), encoding="ascii")
    os.replace(partial, path)


def load_record(records: Path, topic: str, student: str) -> Record | None:
    """The record of a submission; None where there is none that can be read."""
    try:
        data = json.loads(record_path(records, topic, student).read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            return None
        data["verdicts"] = [Verdict.from_data(entry) for entry in data["verdicts"]]
        data["executed"] = nbformat.from_dict(data["executed"])
        nbformat.validate(data["executed"])
        return Record(**data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return None


def hash_of_files(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def hash_of_judge(topic: str, release: NotebookNode) -> str:
    """A hash of all that decides a verdict on our side: code, exercises, assignment, torch."""
    package, references = Path(autograder.__file__).parent, Path(solutions.__file__).parent
    parts = [*package.glob("student/*.py"), *package.glob("exercises/*.py")]
    parts += [*package.glob("runner/*.py"), package / "build" / "cases.py"]
    parts += references.glob("*.py")
    digest = hashlib.sha256(f"{torch.__version__} {topic} {hash_of_notebook(release)}".encode())
    # By folder and name alone: where the two packages are installed changes nothing.
    for path in sorted(parts, key=lambda path: path.parts[-2:]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
