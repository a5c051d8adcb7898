"""What a person sees of a class run: progress while it goes, a table at its end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from autograder.course import Course, check_id
from autograder.grading.classrun import Result
from autograder.grading.rehearsal import IN_ALL, Change
from autograder.grading.submissions import named
from autograder.grading.verification import Verified
from autograder.student.verdicts import points_text

console = Console()
LONGEST_NAME = 40  # in one line of the table


class RateColumn(ProgressColumn):
    """Submissions a minute, of late."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{60 * speed:.0f}/min" if speed else "…/min")


class Bar:
    """A progress bar on a terminal: done of all, rate, time gone and left, and what failed."""

    what = ""

    def __init__(self) -> None:
        self.failed = 0
        self.bar = Progress(
            TextColumn(self.what),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TextColumn("so far,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            TextColumn("{task.fields[failures]}", style="red"),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=None, failures="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def show(self, name: str, failed: bool, done: int, total: int) -> None:
        self.failed += failed
        failures = f"{self.failed} {self.failure}" if self.failed else ""
        self.bar.update(self.task, completed=done, total=total, description=name, failures=failures)

    failure = "failed"


class ClassProgress(Bar):
    """Of grading; where there is no terminal, a line for each submission."""

    what, failure = "grading", "not graded"

    def __call__(self, result: Result, done: int, total: int) -> None:
        text = f"{named(result.student)} {result.topic}"
        self.show(text, not result.graded, done, total)
        if not console.is_terminal and (result.fresh or result.judged_again):
            ending = points_of(result) if result.graded else reason_of(result)
            print(f"[{done}/{total}] {text}: {ending}", flush=True)


class VerifyProgress(Bar):
    """Of verifying; where there is no terminal, nothing."""

    what, failure = "verifying", "not as recorded"

    def __call__(self, verified: Verified, done: int, total: int) -> None:
        self.show(f"{verified.student} {verified.topic}", bool(verified.problems), done, total)


def print_table(results: list[Result], course: Course) -> None:
    _print_rows(
        ["student", "topic", "points", "what went wrong"],
        [[item.student, item.topic, points_of(item), reason_of(item)] for item in results],
    )
    print(_closing_line(results, course))


def print_changes(results: list[Result], changes: list[Change], course: Course) -> None:
    """What grading would change, cell by cell, and who could not be graded or is flagged."""
    if changes:
        _print_rows(
            ["student", "topic", "points", "what would change"],
            [
                [
                    item.student,
                    item.topic,
                    f"{_shown(item.before)} → {_shown(item.after)}",
                    item.cell.removeprefix(check_id("")),
                ]
                for item in changes
            ],
        )
    odd = [item for item in results if not item.graded or item.flags]
    if odd:
        _print_rows(
            ["student", "topic", "points", "what went wrong"],
            [[item.student, item.topic, points_of(item), reason_of(item)] for item in odd],
        )
    students = len({(item.student, item.topic) for item in changes})
    count = sum(item.cell != IN_ALL for item in changes)
    print(
        f"Nothing is written but records of what was run, which is not run again: {_scores(count)} "
        f"in {students} of {len(results)} submissions would change. Grade without --dry-run to "
        "write them."
        if changes
        else "Nothing would change in the gradebook."
    )


WHERE = "Say where they are with --submitted."


def print_verified(verified: list[Verified], refused: int, course: Course) -> None:
    wrong = [item for item in verified if item.problems]
    if wrong:
        _print_rows(
            ["student", "topic", "", "what does not agree"],
            [[item.student, item.topic, "✘", "\n".join(item.problems)] for item in wrong],
        )
    right = len(verified) - len(wrong)
    print(
        f"{right} of {len(verified)} submissions verified: their scores follow from their records."
    )
    if refused:
        print(f"{refused} more could not be graded: grades.csv says why.")
    absent = [named(item.student) for item in verified if not item.compared]
    if len(absent) == len(verified):
        print(f"Submissions were not compared: none of these is in {course.submitted}. {WHERE}")
    elif absent:
        print(f"Not in {course.submitted}, and not compared: {', '.join(absent)}. {WHERE}")
    for item in verified:
        if item.by_hand:
            print(
                f"{named(item.student)} {item.topic}: a person gave points, which no record holds, "
                f"in {', '.join(item.by_hand)}."
            )


def _print_rows(titles: list[str], rows: list[list[str]]) -> None:
    table = Table(title=None, header_style="bold")
    # One long name would leave no room for the rest.
    width = min(LONGEST_NAME, max((Text(named(row[0])).cell_len for row in rows), default=0))
    table.add_column(titles[0], overflow="fold", min_width=width, max_width=LONGEST_NAME)
    for title in titles[1:-1]:
        table.add_column(title, no_wrap=True, justify="right" if title == "points" else "left")
    table.add_column(titles[-1], overflow="fold")
    for name, *row in rows:
        table.add_row(*map(Text, [named(name), *row]))  # as it stands: a name may hold brackets
    wide = console if console.is_terminal else Console(width=140)
    wide.print(table)


def _scores(count: int) -> str:
    return "1 score" if count == 1 else f"{count} scores"


def _shown(points: float | None) -> str:
    return "—" if points is None else points_text(points)


def points_of(result: Result) -> str:
    if not result.graded:
        return "—"
    text = f"{points_text(result.points)}/{points_text(result.max_points)}"
    return text + (f" ({points_text(result.by_hand)} by hand)" if result.by_hand else "")


def reason_of(result: Result) -> str:
    if result.ungradable:
        return f"not graded: {result.ungradable}"
    if result.broken:
        return f"grading failed: {result.broken}"
    flags = [f"⚑ {flag.kind}: {flag.evidence}" for flag in result.flags]
    return "\n".join(["; ".join(result.notes), *flags]).strip()


def _closing_line(results: list[Result], course: Course) -> str:
    fresh = sum(result.fresh and result.graded for result in results)
    ungraded = sum(not result.graded for result in results)
    again = sum(result.judged_again for result in results)
    kept = sum(not (result.fresh or result.judged_again) for result in results)
    parts = [f"{fresh} graded now", *([f"{again} judged again"] if again else [])]
    parts += [f"{kept} unchanged", f"{ungraded} not graded"]
    where = f"gradebook.db, feedback/ and grades.csv are in {course.into}"
    line = f"{', '.join(parts)}. {where}."
    by_hand = {points_text(result.by_hand) for result in results if result.by_hand}
    if by_hand:
        points = by_hand.pop() if len(by_hand) == 1 else "…"
        line += f"\n({points} by hand): so many of the points wait for a person, in formgrader."
    flagged = sum(bool(result.flags) for result in results)
    if flagged:
        line += f"\n{flagged} flagged (⚑): for a person to judge; a flag takes no points."
    if not all(result.sandboxed for result in results):
        line += "\nWithout a sandbox: what students wrote ran with your rights."
    return line
