"""Checks of the sandbox: that there can be one, and that real kernels are held by it."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.doctor.findings import GIB, MIB, Said, Site, ok, problem, warning

if TYPE_CHECKING:
    from autograder.runner.notebook import NotebookRun
    from autograder.runner.sandbox import Limits

PATIENCE = 60.0  # seconds for a cell
WALLS = {"pids": "processes", "memory": "memory"}  # by the name of their control group
# What may forbid namespaces to those who are not root, and the value that allows them.
PROC_SYS = Path("/proc/sys")
SETTINGS = {
    "kernel/unprivileged_userns_clone": 1,
    "kernel/apparmor_restrict_unprivileged_userns": 0,
    "user/max_user_namespaces": 10_000,
}
FILE, DISK, MEMORY, PROCESSES = 8 * MIB, 16 * MIB, 2 * GIB, 40


def check_bubblewrap(site: Site) -> Said:
    from autograder.runner.sandbox import why_unavailable

    reason = why_unavailable()
    if not reason:
        said = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, timeout=10)
        return ok(f"{said.stdout.strip()} makes a sandbox")
    if shutil.which("bwrap") is None:
        found, todo = "bwrap is not on PATH", reason
    else:
        found, _, todo = reason.partition(". ")
        todo = _how_to_allow() or f"{todo} In a container, allow it (for docker: --privileged)."
    # Who has waived the sandbox for good is not stopped by its absence.
    return problem(found, todo) if site.options.sandbox else warning(found, todo)


def _how_to_allow() -> str:
    """The commands that lift what forbids namespaces here; empty where none is seen."""
    commands = []
    for name, allowed in SETTINGS.items():
        place = PROC_SYS / name
        text = place.read_text().strip() if place.is_file() else ""
        if text.isdigit() and (int(text) == 0) == (allowed > 0):
            commands.append(f"`sudo sysctl -w {name.replace('/', '.')}={allowed}`")
    return f"Run {' and '.join(commands)}." if commands else ""


def check_namespaces(site: Site) -> Said:
    """A kernel that starts is in six new namespaces, or it would have ended before; what it sees
    from in there is asked all the same."""
    from autograder.runner.kernels import the_nursery
    from autograder.runner.sandbox import Limits

    if untried := _untried(site):
        return untried
    began = time.monotonic()
    the_nursery().wait_until_warm()
    warm = time.monotonic()
    source = site.root / "source"
    run = _run(
        f"""
        import json, os, socket
        seen = os.path.exists({str(source)!r})
        links = [name for _, name in socket.if_nameindex()]
        print(json.dumps([os.getpid(), links, os.listdir("/proc"), seen]))
        """,
        limits=Limits.of(site.options),
    )
    ended = time.monotonic()
    pid, links, processes, seen = json.loads(_said(run, 0))
    held = [
        (pid == 1, "processes"),
        (links == ["lo"], "the network"),
        (processes == [], "/proc"),
        (not seen, str(source)),
    ]
    visible = [name for hidden, name in held if not hidden]
    times = f"warm after {warm - began:.1f} s, a kernel in its own namespaces {ended - warm:.1f} s"
    if visible:
        todo = "Keep the course outside of /usr and of Python's folders, and do not grade here."
        return problem(f"a kernel sees {', '.join(visible)} of the machine", todo)
    return ok(times)


def check_limits(site: Site) -> Said:
    """Small limits, each of which one kernel oversteps."""
    from autograder.runner.cgroups import where_groups_can_be
    from autograder.runner.sandbox import Limits

    if untried := _untried(site):
        return untried
    limits = Limits(memory=MEMORY, disk=DISK, file=FILE, processes=PROCESSES, cpu=60)
    run = _run(_OVERSTEP, _MULTIPLY, limits=limits)
    ended = any(f"more than {PROCESSES} processes" in text for text in run.troubles)
    held: dict[str, bool] = json.loads(_said(run, 0))
    held["processes"] = ended or _said(run, 1).strip() == "refused"
    loose = [name for name, does in held.items() if not does]
    if loose:
        todo = "Do not grade here: one notebook could take the machine from the others."
        return problem(f"no limit holds on {', '.join(loose)}", todo)
    walls = [name for name in WALLS if where_groups_can_be(name)]
    by = (
        f"control groups for {' and '.join(WALLS[name] for name in walls)}"
        if walls
        else "watching alone"
    )
    return ok(f"limits on {', '.join(held)} hold; {by}")


_OVERSTEP = f"""
    import json, os
    def refused(action):
        try:
            action()
        except (OSError, MemoryError):
            return True
        return False
    def write(*names, size):
        for name in names:
            with open(name, "wb") as file:
                file.write(bytes(size))
    answers = {{
        "memory": refused(lambda: bytearray({MEMORY})),
        "files": refused(lambda: write("a", size={FILE + MIB})),
        "disk": refused(lambda: write("a", "b", "c", "d", size={DISK // 3})),
    }}
    print(json.dumps(answers))
"""
# Refused by the system for most; root's are counted, and the kernel is ended. Small programs, since
# forks of a kernel would first be too much memory together.
_MULTIPLY = f"""
    import os, time
    try:
        for _ in range({PROCESSES + 20}):
            os.posix_spawnp("sleep", ["sleep", "10"], os.environ)
        time.sleep(2)
        print("unlimited")
    except BlockingIOError:
        print("refused")
"""


def _untried(site: Site) -> Said | None:
    from autograder.runner.sandbox import why_unavailable

    if not why_unavailable():
        return None
    return warning("not tried: there is no sandbox", "Mend bubblewrap first.")


def _run(*cells: str, limits: Limits) -> NotebookRun:
    from nbformat.v4 import new_code_cell, new_notebook

    from autograder.runner.notebook import RunLimits, run_notebook
    from autograder.student.cases import CaseSet

    notebook = new_notebook(cells=[new_code_cell(textwrap.dedent(cell)) for cell in cells])
    nothing = CaseSet(topic="", seed=0, specs={}, cases={})
    limited = RunLimits(cell=PATIENCE, notebook=2 * PATIENCE, kernel=limits)
    return run_notebook(notebook, nothing, nothing.to_bytes(), limited)


def _said(run: NotebookRun, cell: int) -> str:
    """What a cell printed; an error that it ended with instead is this check's own."""
    outputs = run.notebook.cells[cell].outputs
    text = "".join(output.text for output in outputs if output.get("name") == "stdout")
    errors = [output.evalue for output in outputs if output.output_type == "error"]
    if not text and errors and not (cell and run.troubles):
        raise RuntimeError(f"a kernel failed: {errors[-1]}")
    return text
