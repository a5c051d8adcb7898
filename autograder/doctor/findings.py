"""What a check says, and what it is about."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # a package that is missing is to be found, not to be stumbled over
    from autograder.course import Course, GradingOptions

State = Literal["OK", "warning", "problem"]
OK: State = "OK"
WARNING: State = "warning"  # grading goes on
PROBLEM: State = "problem"  # grading stops, or would not hold what is promised
Said = tuple[State, str, str]  # the state, what was found, what to do
MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Finding:
    """How one check ended."""

    name: str
    state: State
    found: str
    todo: str = ""


def ok(found: str) -> Said:
    return OK, found, ""


def warning(found: str, todo: str) -> Said:
    return WARNING, found, todo


def problem(found: str, todo: str) -> Said:
    return PROBLEM, found, todo


def together(parts: list[Said]) -> Said:
    """Several statements as one, in the worst of their states."""
    worst = max((state for state, _, _ in parts), key=(OK, WARNING, PROBLEM).index)
    todo = " ".join(dict.fromkeys(text for _, _, text in parts if text))
    return worst, "; ".join(found for _, found, _ in parts), todo


class Site:
    """The course in the working directory and the folder of its results, as `grade` takes them."""

    def __init__(self, into: Path | None = None) -> None:
        self.given = into

    @cached_property
    def course(self) -> Course:
        from autograder.course import Course, course_root

        return Course.at(course_root(), None, self.given)

    @cached_property
    def options(self) -> GradingOptions:
        """As they are set; the defaults where they cannot be read, as a check of its own says."""
        from autograder.course import GradingOptions, Trouble

        try:
            return self.course.options()
        except (Trouble, SystemExit):
            return GradingOptions()

    @property
    def root(self) -> Path:
        from autograder.course import Trouble

        try:
            return self.course.root
        except Trouble:
            return Path.cwd()

    @property
    def into(self) -> Path:
        return (self.given or self.root).absolute()

    @property
    def gradebook(self) -> Path:
        return self.into / "gradebook.db"

    @property
    def workers(self) -> int:
        from autograder.course import usable_cores

        return self.options.workers or usable_cores()


def programs() -> str:
    """Where programs are looked for: beside the running Python too, as grading does."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
