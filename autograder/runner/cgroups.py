"""Walls for what all processes of a kernel hold together, where the grader may build them.

For root the limit on processes that one sets itself (RLIMIT_NPROC) counts nothing, and the
nursery's watch looks a few times a second, which whoever forks fast enough wins. It sees no memory
that is in no process either, such as a file in memory. So where control groups can be written, as
root mostly can, each kernel goes into some of its own. Elsewhere RLIMIT_NPROC and the watch hold.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from functools import cache
from pathlib import Path

PREFIX, LOOKS = "autograder-", 30
ROOT = Path("/sys/fs/cgroup")
PROCESSES, MEMORY = "pids", "memory"
# The files that hold a limit, in version 2 and in version 1.
LIMITS = {PROCESSES: ("pids.max",), MEMORY: ("memory.max", "memory.limit_in_bytes")}
OUT_OF_MEMORY = ("memory.events", "memory.oom_control")


class Walls:
    """The control groups of one kernel; where none can be made, nothing at all."""

    def __init__(self, processes: int, memory: int) -> None:
        self.folders: list[Path] = []
        made: dict[Path, Path] = {}
        for kind, most in ((PROCESSES, processes), (MEMORY, memory)):
            place = where_groups_can_be(kind)
            if place is None:
                continue
            with contextlib.suppress(OSError):
                folder = made.setdefault(place, place / f"{PREFIX}{uuid.uuid4().hex}")
                folder.mkdir(exist_ok=True)
                self.folders.append(folder)
                _limit_in(folder, kind).write_text(str(most))

    def take(self, process: int) -> None:
        """The process, by its number on this side, and all that it will start."""
        for folder in self.folders:
            with contextlib.suppress(OSError):  # it has ended
                (folder / "cgroup.procs").write_text(str(process))

    @property
    def were_too_narrow(self) -> bool:
        """Whether a process was ended because there was no memory left within them."""
        for folder in self.folders:
            for name in OUT_OF_MEMORY:
                with contextlib.suppress(OSError, ValueError):
                    lines = (folder / name).read_text().splitlines()
                    if any(int(line.split()[1]) for line in lines if line.startswith("oom_kill ")):
                        return True
        return False

    def close(self) -> None:
        for folder in self.folders:
            for _ in range(LOOKS):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:  # the last of its processes is about to end
                    time.sleep(0.01)
                else:
                    break


def _limit_in(folder: Path, kind: str) -> Path:
    return next((folder / name for name in LIMITS[kind] if (folder / name).exists()), folder)


@cache
def where_groups_can_be(kind: str) -> Path | None:
    """The folder in which groups with such a limit can be made; None where there is none.
    What runs that were killed have left there is removed."""
    for place in _places(kind):
        if not (place / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            trial = place / f"{PREFIX}{uuid.uuid4().hex}"
            trial.mkdir()
            usable = _limit_in(trial, kind) != trial
            trial.rmdir()
            if usable:
                sweep(place)
                return place
    return None


def _places(kind: str) -> list[Path]:
    """Below our own group, whose limits then hold too; but version 2 lets no group have both
    processes and such groups, and memory is not to be had beyond what we were given."""
    own = {PROCESSES: "", MEMORY: ""}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for name in controllers.split(",") if controllers else own:
                own[name] = path.strip("/")
    trees = [ROOT / kind, ROOT]
    below = [tree / own[kind] for tree in trees]
    return below if kind == MEMORY else [*below, *trees]


def sweep(place: Path) -> None:
    for folder in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # one that is in use cannot be removed
            folder.rmdir()


def number_here(nursery: int, inside: int) -> int | None:
    """The number on this side of a process that the nursery knows by another; None where it has
    ended. `nursery` is bubblewrap's process."""
    for process in _descendants(nursery):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/status").read_bytes().split(b"\n"):
                if line.startswith(b"NSpid:"):
                    numbers = line.split()[1:]
                    # Of the machine, of the sandbox, and of the kernel's own namespace.
                    if len(numbers) == 3 and int(numbers[1]) == inside:
                        return process
    return None


def _descendants(process: int) -> list[int]:
    found, waiting = [], [process]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{parent}/task/{task}/children").read_text()
                    children = list(map(int, text.split()))
                    found += children
                    waiting += children
    return found
