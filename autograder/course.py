"""Where a course keeps things, and how nbgrader is told so."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from traitlets import Bool, Dict, Float, Int, TraitError, Unicode
from traitlets.config import Config, Configurable, PyFileConfigLoader

CONFIG_FILE = "nbgrader_config.py"
SQLITE = b"SQLite format 3\0"  # how a gradebook starts


class Trouble(Exception):
    """Something that a person must mend; its text says what is wrong and what to do."""


class GradingOptions(Configurable):
    """What an instructor may set in nbgrader_config.py, as `c.GradingOptions.workers = 4`."""

    due_dates = Dict(
        per_key_traits=Unicode(),
        help="Due date of each topic, such as '2026-10-12 23:59:00 UTC'. One that was set in the "
        "gradebook (by formgrader, say) is left as it is.",
    ).tag(config=True)
    workers = Int(
        0, help="Notebooks run side by side; 0 stands for the number of cores that may be used."
    ).tag(config=True)
    sandbox = Bool(
        True, help="Run kernels in a sandbox; without, students' code runs with your rights."
    ).tag(config=True)
    notebook_timeout = Float(900.0, help="Seconds for a whole notebook.").tag(config=True)
    output_limit = Int(1_000_000, help="Characters that a cell may print.").tag(config=True)
    memory_limit = Float(4.0, help="GiB that a kernel may hold, all its processes together.").tag(
        config=True
    )
    disk_limit = Float(0.5, help="GiB that a kernel may write; one file may have half of it.").tag(
        config=True
    )
    process_limit = Int(
        64, help="Processes that a kernel may have, and twice as many with threads."
    ).tag(config=True)
    cpu_limit = Float(900.0, help="Seconds of CPU time for a whole notebook.").tag(config=True)
    cell_timeout = Float(
        90.0, help="Seconds for a cell of the student's own; a check has its own limits."
    ).tag(config=True)
    draw_figures = Bool(
        False,
        help="Draw the figures of each notebook as it is graded, which takes about twice as long; "
        "without, graded notebooks and feedback show those that were handed in.",
    ).tag(config=True)
    exercise_timeout = Float(
        0.0,
        help="Seconds that the answers to one exercise may take on the secret cases; 0: as long as "
        "the exercise allows, which is known to suffice on a busy machine.",
    ).tag(config=True)


def usable_cores() -> int:
    """The cores that this process may use; a machine may have more."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def printable(text: str) -> str:
    """In one line, without what would steer a terminal: it may quote what a student wrote."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def check_id(exercise: str) -> str:
    """The grade_id of an exercise's check cell."""
    return "check_" + exercise.replace(".", "_")


def grade_id_of(cell: NotebookNode) -> str:
    """nbgrader's name of a cell, empty for a cell that is the student's own."""
    given = cell.metadata.get("nbgrader", {})
    return str(given.get("grade_id", "")) if isinstance(given, dict) else ""


def is_locked(cell: NotebookNode) -> bool:
    """Whether a cell of the assignment is not for students to change."""
    given = cell.metadata.get("nbgrader", {})
    return bool(given.get("locked")) or bool(given.get("grade") and not given.get("solution"))


def parse_time(text: str) -> datetime:
    """A time as nbgrader keeps it, in UTC, unsaid; ValueError where it is none.

    By ourselves: nbgrader takes an offset, and a zone that it does not know, for UTC.
    """
    iso = re.sub(r"\s*(?:UTC|Z)$", "+00:00", text.strip())
    time = datetime.fromisoformat(re.sub(r"\s+(?=[+-]\d\d:?\d\d$)", "", iso))
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def course_root() -> Path:
    """The nearest folder at or above the working directory that holds a course."""
    here = Path.cwd()
    for folder in [here, *here.parents]:
        if (folder / CONFIG_FILE).is_file() and (folder / "source").is_dir():
            return folder
    raise Trouble(f"This is no course: there is no {CONFIG_FILE} with source/ here or above.")


@dataclass(frozen=True)
class Course:
    """The folders of a course. Results go to `into`, by default the root itself.

    In a rehearsal `into` is a place for the time being, and `records_at` the records that count.
    """

    root: Path
    submitted: Path
    into: Path
    records_at: Path | None = None

    @classmethod
    def at(cls, root: Path, submitted: Path | None = None, into: Path | None = None) -> Course:
        place = (into or root).absolute()
        return cls(root.absolute(), (submitted or root / "submitted").absolute(), place)

    @property
    def gradebook(self) -> Path:
        return self.into / "gradebook.db"

    @property
    def records(self) -> Path:
        return self.records_at or self.into / "verdicts"

    @property
    def refusals(self) -> Path:
        """Where it is kept what could not be graded; in a rehearsal, for the time being too."""
        return self.into / "verdicts"

    @property
    def rehearses(self) -> bool:
        return self.records_at is not None

    def source_notebook(self, topic: str) -> Path:
        return self.root / "source" / topic / f"{topic}.ipynb"

    def release_notebook(self, topic: str) -> Path:
        return self.root / "release" / topic / f"{topic}.ipynb"

    def prepare(self) -> None:
        """Make the folder for results; Trouble where nothing can be written there."""
        try:
            self.into.mkdir(parents=True, exist_ok=True)
            probe = self.into / f".probe-{os.getpid()}"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            raise Trouble(
                f"Cannot write to {self.into}: {error.strerror}. Make it writable, or name another "
                "folder with --into."
            ) from error
        if self.gradebook.exists():
            self._check_gradebook()

    def _check_gradebook(self) -> None:
        try:
            with self.gradebook.open("r+b") as file:
                start = file.read(len(SQLITE))
        except OSError as error:
            raise Trouble(f"Cannot write to {self.gradebook}: {error.strerror}.") from error
        if start not in (b"", SQLITE):
            raise Trouble(f"{self.gradebook} is no gradebook: move it away or restore it.")

    def config(self) -> Config:
        """nbgrader's configuration of this course: its file, with the folders of this run."""
        config: Config = self._file_config()
        folders = {
            "root": self.root,
            "submitted_directory": self.submitted,
            "autograded_directory": self.into / "autograded",
            "feedback_directory": self.into / "feedback",
        }
        for name, folder in folders.items():
            config.CourseDirectory[name] = str(folder)
        config.CourseDirectory.db_url = f"sqlite:///{self.gradebook}"
        config.JudgedExecute.records = str(self.records)
        return config

    def options(self) -> GradingOptions:
        try:
            return GradingOptions(config=self._file_config())
        except TraitError as error:
            raise Trouble(f"{CONFIG_FILE}: {error}") from error

    def due_date(self, topic: str) -> datetime | None:
        """When a topic is due by the configuration, as nbgrader keeps it: in UTC, unsaid."""
        given = self.options().due_dates.get(topic)
        if not given:
            return None
        try:
            return parse_time(given)
        except ValueError as error:
            raise Trouble(
                f"{CONFIG_FILE}: {given!r} is no due date for {topic}; write it as "
                "'2026-10-12 23:59:00 UTC' or '2026-10-12 23:59:00 +02:00'."
            ) from error

    def _file_config(self) -> Any:
        # nbgrader starts alembic by name, which lies beside the running Python.
        beside = str(Path(sys.executable).parent)
        if beside not in os.environ.get("PATH", "").split(os.pathsep):
            os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", "")])
        if not (self.root / CONFIG_FILE).is_file():
            return Config()
        try:
            return PyFileConfigLoader(CONFIG_FILE, path=str(self.root)).load_config()
        except Exception as error:  # it is Python, so it may raise anything
            raise Trouble(f"{CONFIG_FILE} fails: {type(error).__name__}: {error}") from error
