"""What judging and grading cost, as ratios of things measured side by side in one run.

Run it with `make bench`, or `python benchmarks/run.py`; it takes about a minute, and nothing in it
is asserted: seconds depend on the machine and on what else it does, ratios hardly do.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode
from rich.console import Console
from rich.table import Table

from autograder.build.cases import build_cases
from autograder.build.release import read_notebook
from autograder.course import Course
from autograder.exercises import TOPICS
from autograder.grading.judging import public_bytes
from autograder.runner.answers import try_files
from autograder.runner.kernels import the_nursery
from autograder.runner.notebook import RunLimits, run_notebook
from autograder.runner.sandbox import Limits
from autograder.sample import fill
from autograder.student.cases import CaseSet

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "01_self_attention"
ANSWERS = ROOT / "solutions" / "self_attention.py"
FILES = 4  # copies of the answers to try
SUBMISSIONS = 4  # notebooks to grade


@dataclass
class Measured:
    """One row: two ways to do the same, and what each took, in seconds."""

    what: str
    ways: tuple[str, str]
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.seconds[1] / self.seconds[0]


def main() -> None:
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    table = Table(title="Seconds, measured side by side")
    for column in ("what", "one way", "s", "the other", "s", "ratio"):
        table.add_column(column, justify="right" if column in ("s", "ratio") else "left")
    console = Console()
    for measure in (forked_or_fresh, judged_or_plain, two_workers_or_one):
        with console.status(f"{measure.__name__.replace('_', ' ')} ..."):
            row = measure()
        (one, other), (first, second) = row.ways, row.seconds
        table.add_row(row.what, one, f"{first:.2f}", other, f"{second:.2f}", f"{row.ratio:.2f}")
    console.print(table)


def forked_or_fresh() -> Measured:
    """`autograder try`: files judged in forks of a warm process, or in a fresh Python each."""
    secret = build_cases(TOPICS[TOPIC], 1)
    with folder() as place:
        files = [Path(shutil.copy(ANSWERS, place / f"{number}.py")) for number in range(FILES)]
        forked = timed(lambda: list(try_files(secret, files, workers=1)))
        start = "from autograder.cli import main; main()"
        command = [sys.executable, "-c", start, "try", TOPIC, "--seed", "1"]
        fresh = timed(
            lambda: [
                subprocess.run([*command, str(file)], check=True, capture_output=True)
                for file in files
            ]
        )
    ways = ("forked from a warm process", "a fresh Python each")
    return Measured(f"trying a file ({FILES} in turn)", ways, (forked / FILES, fresh / FILES))


def judged_or_plain() -> Measured:
    """One notebook, executed by nbclient alone, or run beside the judge on secret cases.

    By turns, twice, and the better of each: the first kernel reads torch from the disk.
    """
    secret = build_cases(TOPICS[TOPIC], 1)
    the_nursery().wait_until_warm()  # once for a whole class
    alike = {"env": {**os.environ, "OMP_NUM_THREADS": "1"}, "stderr": subprocess.DEVNULL}
    plain, judged = [], []
    for _ in range(2):
        with release() as (notebook, place):
            resources = {"metadata": {"path": str(place)}}
            client = NotebookClient(notebook, resources=resources, allow_errors=True)
            plain.append(timed(partial(client.execute, **alike)))
        judged.append(timed(partial(graded, secret)))
    ways = ("in a sandbox, beside the judge, warm", "nbclient alone, cold")
    return Measured("running a notebook", ways, (min(judged), min(plain)))


def two_workers_or_one() -> Measured:
    """Submissions graded (notebook run and judged) side by side, or in turn."""

    secret = build_cases(TOPICS[TOPIC], 1)

    def grade(number: int) -> None:
        graded(secret)

    def by(workers: int) -> float:
        with ThreadPoolExecutor(workers) as pool:
            seconds = timed(lambda: list(pool.map(grade, range(SUBMISSIONS))))
        return seconds / SUBMISSIONS

    ways = ("two workers", "one worker")
    return Measured(f"a submission ({SUBMISSIONS} in all)", ways, (by(2), by(1)))


def graded(secret: CaseSet) -> None:
    limits = RunLimits(kernel=Limits())
    run_notebook(answered(), secret, public_bytes(TOPIC), limits)


def answered() -> NotebookNode:
    """The release with the reference's answers."""
    notebook = read_notebook(Course.at(ROOT).release_notebook(TOPIC))
    return fill(notebook, ANSWERS.read_text(encoding="utf-8"))


@contextmanager
def release() -> Iterator[tuple[NotebookNode, Path]]:
    """An answered notebook, in a copy of the folder that it is released in."""
    with folder() as place:
        shutil.copytree(ROOT / "release" / TOPIC, place / TOPIC)
        yield answered(), place / TOPIC


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        yield Path(name)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
