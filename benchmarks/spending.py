"""What a command, and all that it starts, takes: time, CPU time and memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY = 4.0  # seconds between two looks at the memory, which take the machine's time too
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Spent:
    """Seconds, and bytes at their peak: of the command's own process, and of all together."""

    seconds: float
    cpu: float
    own_memory: int
    all_memory: int


def spend(command: list[str], where: Path) -> Spent:
    """Run a command to its end; what it says is shown where it fails.

    CPU time is that of the processes that were waited for, which is why all that is measured here
    has to end in an orderly way.
    """
    own, together = 0, 0
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=where, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        looked = started
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - looked > LOOK_EVERY:
                looked = time.perf_counter()
                own = max(own, memory_of(process.pid))
                together = max(together, sum(map(memory_of, with_descendants(process.pid))))
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{said.read()[-2000:]}")
    return Spent(seconds, usage.ru_utime + usage.ru_stime, own, together)


def with_descendants(pid: int) -> list[int]:
    """A process and all that came of it."""
    found = [pid]
    with contextlib.suppress(OSError):  # it may end as it is looked at
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += with_descendants(int(child))
    return found


def memory_of(pid: int) -> int:
    """Bytes that it holds; of pages that several hold (forks do), its share."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of those that it has waited for."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:15])) / TICKS
