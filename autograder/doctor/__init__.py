"""`autograder doctor`: whether this machine and this course can grade, and what to do if not.

What a check needs beyond the standard library it imports itself, so that a package that is missing
costs that check alone.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.doctor import courses, kernels, machine
from autograder.doctor.findings import OK, PROBLEM, WARNING, Finding, Said, Site

Check = Callable[[Site], Said]
CHECKS: dict[str, Check] = {
    "python": machine.check_python,
    "packages": machine.check_packages,
    "alembic": machine.check_alembic,
    "git and make": machine.check_tools,
    "chromium": machine.check_browser,
    "locale": machine.check_locale,
    "clock": machine.check_clock,
    "memory": machine.check_memory,
    "cores": machine.check_cores,
    "ulimits": machine.check_own_limits,
    "fonts": machine.check_fonts,
    "shared memory": machine.check_shared_memory,
    "socket paths": machine.check_socket_paths,
    "results": machine.check_results,
    "disk": machine.check_disk,
    "bubblewrap": kernels.check_bubblewrap,
    "namespaces": kernels.check_namespaces,
    "limits": kernels.check_limits,
    "course": courses.check_config,
    "due dates": courses.check_due_dates,
    "releases": courses.check_releases,
    "gradebook": courses.check_gradebook,
}
UNEXPECTED = "This check could not be made: mend what it names, or report it to the authors."
COLOURS = {OK: "green", WARNING: "yellow", PROBLEM: "bold red"}


def examine(into: Path | None = None, checks: dict[str, Check] = CHECKS) -> list[Finding]:
    """What each check finds in the course of the working directory; none stops the others."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # that it cannot say all is for us to say
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)  # nbgrader logs what is said here
    site = Site(into)
    console = Console(stderr=True)
    findings = []
    with console.status("") as status, warnings.catch_warnings(action="ignore"):
        for name, check in checks.items():
            status.update(f"looking at {name}")
            findings.append(look(name, check, site))
    return findings


def look(name: str, check: Check, site: Site) -> Finding:
    try:
        return Finding(name, *check(site))
    except (Exception, SystemExit) as error:  # a configuration may end Python
        text = str(error).strip().splitlines()
        found = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
        todo = machine.SET_UP if isinstance(error, ModuleNotFoundError) else UNEXPECTED
        return Finding(name, PROBLEM, found, todo)


def print_findings(findings: list[Finding]) -> None:
    table = Table(header_style="bold")
    for header in ("check", "state"):
        table.add_column(header, no_wrap=True)
    table.add_column("what was found, and → what to do", overflow="fold")
    for finding in findings:
        text = finding.found + (f"\n→ {finding.todo}" if finding.todo else "")
        table.add_row(finding.name, Text(finding.state, style=COLOURS[finding.state]), Text(text))
    console = Console()
    wide = console if console.is_terminal else Console(width=140)
    wide.print(table)
    print(_closing_line(findings))


def _closing_line(findings: list[Finding]) -> str:
    problems, warnings = (
        [finding.name for finding in findings if finding.state == state]
        for state in (PROBLEM, WARNING)
    )
    said = f"Grading would fail here: {', '.join(problems)}" if problems else "Grading works here"
    return said + (f"; to be looked at: {', '.join(warnings)}." if warnings else ".")


def as_json(findings: list[Finding]) -> str:
    return json.dumps([asdict(finding) for finding in findings], ensure_ascii=True, indent=2)
