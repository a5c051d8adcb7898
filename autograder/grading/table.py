"""What a person sees of a class run: progress while it goes, a table at its end."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from autograder.course import Course
from autograder.grading.classrun import Result
from autograder.student.verdicts import points_text

console = Console()


class ClassProgress:
    """A progress bar on a terminal, a line for each submission elsewhere."""

    def __init__(self) -> None:
        self.bar = Progress(
            TextColumn("grading"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> ClassProgress:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def __call__(self, result: Result, done: int, total: int) -> None:
        text = f"{result.student} {result.topic}"
        self.bar.update(self.task, completed=done, total=total, description=text)
        if not console.is_terminal and result.fresh:
            ending = points_of(result) if result.graded else "not graded"
            print(f"[{done}/{total}] {text}: {ending}", flush=True)


def print_table(results: list[Result], course: Course) -> None:
    table = Table(title=None, header_style="bold")
    table.add_column("student", no_wrap=True)
    table.add_column("topic", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("what went wrong", overflow="fold")
    for result in results:
        cells = (result.student, result.topic, points_of(result), reason_of(result))
        table.add_row(*map(Text, cells))  # as it stands: a name may hold brackets
    wide = console if console.is_terminal else Console(width=140)
    wide.print(table)
    print(_closing_line(results, course))


def points_of(result: Result) -> str:
    if not result.graded:
        return "—"
    text = f"{points_text(result.points)}/{points_text(result.max_points)}"
    return text + (f" +{points_text(result.by_hand)} by hand" if result.by_hand else "")


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
    flagged = sum(bool(result.flags) for result in results)
    if flagged:
        line += f"\n{flagged} flagged (⚑): for a person to judge; a flag takes no points."
    if not all(result.sandboxed for result in results):
        line += "\nWithout a sandbox: what students wrote ran with your rights."
    return line
