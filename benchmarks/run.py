"""What grading costs, beside stock nbgrader: measured side by side, in one run, on one class.

Run it with `make bench` (about ten minutes on two cores), or `python benchmarks/run.py --quick`
(two or three). Nothing in it is asserted: seconds depend on the machine and on what else it does,
ratios much less.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from rich.console import Console
from rich.table import Table
from spending import Spent, cpu_of, spend, with_descendants

from autograder.build.cases import build_cases
from autograder.build.release import read_notebook
from autograder.course import Course, usable_cores
from autograder.exercises import TOPICS
from autograder.grading.judging import public_bytes
from autograder.grading.submissions import find_submissions, read_submission, repair
from autograder.runner.answers import try_files
from autograder.runner.kernels import the_nursery
from autograder.runner.notebook import NotebookRun, RunLimits, run_notebook
from autograder.runner.sandbox import Limits
from autograder.runner.session import conclude
from autograder.sample import fill, load_samples, make_class
from autograder.student.cases import CaseSet

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "01_self_attention"
ANSWERS = ROOT / "solutions" / "self_attention.py"
FILES = 4  # copies of the answers to try
SUBMISSIONS = 4  # notebooks to grade by one worker, and by two
# One copied check ends stock nbgrader's run of the whole class; what cannot be read costs nothing;
# an endless loop costs both sides what their limits say.
LEFT_OUT = {"copied-check", "not-json", "renamed", "endless"}
STOCK_CONFIG = 'c = get_config()\nc.CourseDirectory.course_id = "transformers"\n'
console = Console()


@dataclass(frozen=True)
class Sizes:
    """Of the class that both ways grade; of the smaller one that shows what stock nbgrader's start
    costs; how often ours grades each submission to show the same; and of classes that grow."""

    small: int
    large: int
    times: int
    growing: tuple[int, ...]


FULL = Sizes(4, 14, 10, (25, 50, 100, 200))
QUICK = Sizes(1, 5, 5, ())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller classes, fewer rows")
    quick = parser.parse_args().quick
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    sizes = QUICK if quick else FULL
    with folder() as place:
        compared = stock_and_ours(place, sizes)
        shares_of_the_cost(place / "large", compared.ours.cpu)
        if sizes.growing:
            growth(place, sizes, compared.ours_whole)
    rows = [cold_or_warm()]
    if not quick:
        rows += [forked_or_fresh(), judged_or_plain(), drawn_or_not(), two_workers_or_one()]
    print_rows(rows)


# ---- a class, graded in two ways


@dataclass
class Compared:
    """A further submission, start-up apart, and a whole run, in both ways."""

    stock: Spent
    ours: Spent
    stock_whole: Spent
    ours_whole: Spent


def stock_and_ours(place: Path, sizes: Sizes) -> Compared:
    make_course(place / "small", sizes.small)
    make_course(place / "large", sizes.large)
    shutil.copytree(place / "large", place / "repeated")
    repeat(place / "repeated" / "submitted", sizes.times)
    found: dict[str, Spent] = {}
    for name, course, command in (
        ("stock, a smaller class", stock_copy(place / "small"), stock_command()),
        ("ours", place / "large", our_command()),
        ("stock", stock_copy(place / "large"), stock_command()),
        ("ours, repeated", place / "repeated", our_command()),
    ):
        with console.status(f"{name} ..."):
            found[name] = spend(command, course)
    compared = Compared(
        further(found["stock, a smaller class"], found["stock"], sizes.large - sizes.small),
        further(found["ours"], found["ours, repeated"], sizes.large * (sizes.times - 1)),
        found["stock"],
        found["ours"],
    )
    print_compared(compared, sizes)
    return compared


def further(less: Spent, more: Spent, count: int) -> Spent:
    """What one of the `count` submissions took by which two runs differ."""
    seconds, cpu = (more.seconds - less.seconds) / count, (more.cpu - less.cpu) / count
    return Spent(seconds, cpu, more.own_memory, more.all_memory)


def repeat(submitted: Path, times: int) -> None:
    """Each submission several times, as of several students."""
    for student in [place for place in submitted.iterdir() if place.is_dir()]:
        for number in range(1, times):
            shutil.copytree(student, student.with_name(f"{student.name}-{number}"))


def our_command() -> list[str]:
    return [sys.executable, "-c", "from autograder.cli import main; main()", "grade", TOPIC]


def stock_command() -> list[str]:
    return [sys.executable, "-m", "nbgrader", "autograde", TOPIC, "--create"]


def make_course(course: Path, size: int) -> None:
    """A course with a class of that size; the larger of two begins as the smaller does."""
    course.mkdir()
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, course / name)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    kinds = {sample.kind for sample in load_samples(ROOT) if sample.topic == TOPIC} - LEFT_OUT
    make_class(ROOT, course / "submitted", [TOPIC], size, ",".join(sorted(kinds)))


def stock_copy(course: Path) -> Path:
    """The same course as stock nbgrader has it: its own preprocessors, its assignment entered."""
    copy = course.with_name(f"{course.name}-stock")
    shutil.copytree(course, copy)
    (copy / "nbgrader_config.py").write_text(STOCK_CONFIG)
    (copy / "submitted" / ".sample-class").unlink()
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", TOPIC, "--force"]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    return copy


def print_compared(compared: Compared, sizes: Sizes) -> None:
    table = Table(title=f"Topic 01, the same submissions, {os.cpu_count()} cores")
    for column in ("", "stock nbgrader", "autograder grade", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    each, whole = (compared.stock, compared.ours), (compared.stock_whole, compared.ours_whole)
    number = sizes.large
    rows: list[tuple[str, list[float], str]] = [
        ("further: seconds", [spent.seconds for spent in each], ".2f"),
        ("further: CPU seconds", [spent.cpu for spent in each], ".2f"),
        ("further: a minute", [60 / spent.seconds for spent in each], ".1f"),
        (f"a class of {number}: seconds", [spent.seconds for spent in whole], ".1f"),
        (f"a class of {number}: CPU seconds", [spent.cpu for spent in whole], ".1f"),
        ("peak memory, grader, MB", [spent.own_memory / 1e6 for spent in each], ".0f"),
        ("peak memory, all, MB", [spent.all_memory / 1e6 for spent in each], ".0f"),
    ]
    for what, (stock, ours), form in rows:
        ratio = ours / stock if "minute" in what else stock / ours
        table.add_row(what, f"{stock:{form}}", f"{ours:{form}}", f"{ratio:.1f}")
    console.print(table)
    console.print(
        "Stock: no sandbox, one after another. Ours: in the sandbox, judged from outside, a worker "
        "for each core, feedback written. Further: a submission more, start-up apart; stock's is "
        f"the difference of classes of {sizes.small} and {number}, ours of that class handed in "
        f"once and {sizes.times} times. Of memory that forks share, each counts its part.\n"
    )


def growth(place: Path, sizes: Sizes, at_base: Spent) -> None:
    """Larger and larger classes, graded by us; `at_base` is what the class of both ways took."""
    table = Table(title="autograder grade, by the size of the class")
    for column in ("submissions", "seconds", "CPU seconds", "s each", "CPU s each", "MB", "MB all"):
        table.add_column(column, justify="right")
    for count in sizes.growing:
        course = place / f"class-{count}"
        make_course(course, count)
        with console.status(f"ours: {count} submissions ..."):
            spent = spend(our_command(), course)
        shutil.rmtree(course)
        each = further(at_base, spent, count - sizes.large)
        row = [f"{spent.seconds:.0f}", f"{spent.cpu:.0f}", f"{each.seconds:.2f}", f"{each.cpu:.2f}"]
        memory = [f"{held / 1e6:.0f}" for held in (spent.own_memory, spent.all_memory)]
        table.add_row(str(count), *row, *memory)
    console.print(table)
    console.print(f"Each: beyond the class of {sizes.large}, which pays for the start.\n")


# ---- where it goes

# In the kernel: the CPU time of each cell, between its start and its end.
METER = """
def _meter():
    import resource
    def now():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime
    began, cells = [now()], []
    shell = get_ipython()
    shell.events.register("pre_run_cell", lambda info: began.append(now()))
    shell.events.register("post_run_cell", lambda result: cells.append(now() - began[-1]))
    return lambda: print(sum(cells[1:]), now())
_metered = _meter()
"""


REPEATED = 3  # times that each notebook is run for it


@dataclass(frozen=True)
class Shares:
    """CPU seconds of one notebook's run, by what they are spent on."""

    cells: float
    kernel: float  # the rest of what the kernel's process took
    nursery: float  # forking, namespaces, watching and ending
    judge: float
    talking: float  # nbclient, messages, outputs


def shares_of_the_cost(place: Path, marginal: float) -> None:
    """The cells' own time as the floor, and what lies above it."""
    with console.status("the shares of the cost ..."):
        shares = measured_shares(Course.at(place))
    rest = marginal - sum(vars(shares).values())
    table = Table(title="CPU seconds of a submission, and where they go")
    table.add_column("what")
    table.add_column("CPU s", justify="right")
    for spent, text in (
        (shares.cells, "the cells themselves, answering the judge: the floor"),
        (shares.kernel, "kernel: IPython's start, messages, between cells"),
        (shares.nursery, "fork, namespaces, mounts, watching, ending"),
        (shares.talking, "nbclient and zmq on the grader's side"),
        (shares.judge, "the judge: comparing, naming the mistake"),
        (rest, "reading, repair, gradebook, record, feedback (the rest)"),
        (marginal, "together: a further submission in the run above"),
        (marginal - shares.cells, "above the floor (the goal is less than 0.35)"),
    ):
        table.add_row(text, f"{spent:.3f}")
    console.print(table)
    console.print(
        "The rest is what two measurements differ by: the run above, and this one of notebooks "
        "alone, side by side as well. It is no better than both are steady.\n"
    )


def measured_shares(course: Course) -> Shares:
    release = read_notebook(course.release_notebook(TOPIC))
    secret = build_cases(TOPICS[TOPIC], 1)
    the_nursery().wait_until_warm()
    books = [repair(read_submission(s), release)[0] for s in find_submissions(course, TOPIC)]
    metered(books[0], secret)  # what is made once in a run is made now
    count = len(books) * REPEATED
    before, began = nursery_cpu(), time.process_time()
    with ThreadPoolExecutor(usable_cores()) as pool:
        runs = list(pool.map(partial(metered, secret=secret), books * REPEATED))
    used, born = time.process_time() - began, nursery_cpu() - before
    began = time.process_time()
    for item in runs:
        conclude(secret, item.run.responses)  # once more: a run keeps its verdicts
    judge = time.process_time() - began
    cells, kernel = sum(item.cells for item in runs), sum(item.kernel for item in runs)
    spent = (cells, kernel - cells, born - kernel, judge, used - judge)
    return Shares(*(seconds / count for seconds in spent))


@dataclass(frozen=True)
class Metered:
    """A run, and CPU seconds of its cells, and of its kernel with them."""

    run: NotebookRun
    cells: float
    kernel: float


def metered(book: NotebookNode, secret: CaseSet) -> Metered:
    """Run one notebook with a meter in its kernel."""
    book = NotebookNode(book, cells=[NotebookNode(cell) for cell in book.cells])
    book.cells.insert(0, new_code_cell(METER))
    book.cells.append(new_code_cell("_metered()"))
    run = run_notebook(book, secret, public_bytes(TOPIC), RunLimits(kernel=Limits()))
    said = "".join(output.get("text", "") for output in book.cells[-1].outputs)
    cells, kernel = map(float, said.split())
    return Metered(run, cells, kernel)


def nursery_cpu() -> float:
    """Of the nursery, and of the kernels that have ended."""
    return sum(map(cpu_of, with_descendants(the_nursery().process.pid)))


# ---- two ways to do one thing


@dataclass
class Measured:
    """One row: two ways to do the same, and what each took, in seconds."""

    what: str
    ways: tuple[str, str]
    seconds: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.seconds[1] / self.seconds[0]


def print_rows(rows: list[Measured]) -> None:
    table = Table(title="Seconds, measured side by side")
    for column in ("what", "one way", "s", "the other", "s", "ratio"):
        table.add_column(column, justify="right" if column in ("s", "ratio") else "left")
    for row in rows:
        (one, other), (first, second) = row.ways, row.seconds
        table.add_row(row.what, one, f"{first:.2f}", other, f"{second:.2f}", f"{row.ratio:.1f}")
    console.print(table)


def cold_or_warm() -> Measured:
    """From nothing to a kernel that has imported torch and matplotlib, and its end."""
    secret = build_cases(TOPICS[TOPIC], 1)
    the_nursery().wait_until_warm()

    def start(limits: Limits | None) -> float:
        cell = new_code_cell("import torch, matplotlib.pyplot")
        run = partial(run_notebook, new_notebook(cells=[cell]), secret, public_bytes(TOPIC))
        return timed(lambda: run(RunLimits(kernel=limits)))

    warm, cold = zip(*((start(Limits()), start(None)) for _ in range(3)), strict=True)
    ways = ("forked warm, in the sandbox", "started cold")
    return Measured("a kernel with torch and matplotlib", ways, (min(warm), min(cold)))


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


def drawn_or_not() -> Measured:
    """One notebook, run without drawing its figures, as it is by default, or drawing them."""
    secret = build_cases(TOPICS[TOPIC], 1)
    by_turns = [
        [timed(partial(graded, secret, figures)) for figures in (False, True)] for _ in range(3)
    ]
    without, drawing = map(min, zip(*by_turns, strict=True))
    ways = ("figures as handed in", "figures drawn")
    return Measured("running a notebook", ways, (without, drawing))


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


def graded(secret: CaseSet, figures: bool = False) -> None:
    limits = RunLimits(kernel=Limits(), figures=figures)
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
