"""A wall for the number of a kernel's processes, where the grader may build one.

For root the limit that a process sets itself (RLIMIT_NPROC) counts nothing, and the nursery's watch
looks a few times a second, which whoever forks fast enough wins. So where control groups can be
written, as root mostly can, each kernel goes into one of its own. Elsewhere RLIMIT_NPROC holds.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from functools import cache
from pathlib import Path

PREFIX, LOOKS = "autograder-", 30
PLACES = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")  # version 1, version 2


class ProcessGroup:
    """A control group for one kernel; where none can be made, nothing at all."""

    def __init__(self, most: int) -> None:
        place = where_groups_can_be()
        self.folder: Path | None = None
        if place is None:
            return
        folder = place / f"{PREFIX}{uuid.uuid4().hex}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            (folder / "pids.max").write_text(str(most))
            self.folder = folder

    def take(self, process: int) -> None:
        """The process, by its number on this side, and all that it will start."""
        if self.folder is not None:
            with contextlib.suppress(OSError):  # it has ended
                (self.folder / "cgroup.procs").write_text(str(process))

    def close(self) -> None:
        for _ in range(LOOKS if self.folder is not None else 0):
            try:
                assert self.folder is not None
                return self.folder.rmdir()
            except OSError:  # the last of its processes is about to end
                time.sleep(0.01)


@cache
def where_groups_can_be() -> Path | None:
    """The folder in which groups with a limit on processes can be made; None where there is none.
    What runs that were killed have left there is removed."""
    for place in map(Path, PLACES):
        if not (place / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            trial = place / f"{PREFIX}{uuid.uuid4().hex}"
            trial.mkdir()
            usable = (trial / "pids.max").exists()
            trial.rmdir()
            if usable:
                sweep(place)
                return place
    return None


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
