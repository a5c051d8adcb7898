"""Runs in each kernel: tells of what a student's own code opens outside of its place.

It is a script's part of the sandbox, like `nursery.py`, and imports nothing of this package. An
audit hook cannot be taken out again, but what it tells goes through the kernel, so it can be
silenced: a lookout, and no wall. The wall is the sandbox, which refuses whatever is told here.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from typing import Any

MOST_NOTICES, LONGEST_NOTICE = 40, 400

_STDLIB = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_SITE = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib"))
_FREE = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/dev", "/grader")
_FREE_FILES = ("/etc/fonts", "/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types")


def keep_watch(work: str, notices: int) -> None:
    """From now on, a line of JSON (kind, text) into `notices` for each thing tried."""
    own = (work, tempfile.gettempdir(), sys.prefix, sys.base_prefix)
    free = tuple(os.path.realpath(place) for place in own)
    free += _FREE + _FREE_FILES
    told: set[tuple[str, str]] = set()

    def tell(kind: str, text: str) -> None:
        text = text[:LONGEST_NOTICE]
        if (kind, text) in told or len(told) >= MOST_NOTICES:
            return
        told.add((kind, text))
        with contextlib.suppress(OSError):  # full or closed: a kernel never waits for its keeper
            os.write(notices, json.dumps([kind, text]).encode() + b"\n")

    def is_free(place: str) -> bool:
        return any(place == root or place.startswith(root + "/") for root in free)

    def opened(what: str, path: Any) -> None:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or not _is_the_students_doing():
            return
        place = os.path.realpath(path)
        if not is_free(place):
            tell("refused-read", f"{what} {place}")

    def signalled(pid: Any, number: Any) -> None:
        if pid == os.getpid() or not _is_the_students_doing():
            return
        if pid > 0:
            with contextlib.suppress(OSError):
                os.getpgid(pid)
                return  # there is such a process here, so it is one of its own
        tell("refused-signal", f"send signal {number} to process {pid}")

    def connected(address: Any) -> None:
        # Processes of one's own talk through sockets in one's own place.
        own = (
            isinstance(address, str) and "\0" not in address and is_free(os.path.realpath(address))
        )
        if not own and _is_the_students_doing():
            tell("refused-connection", f"connect to {address!r}")

    watched: dict[str, Callable[..., None]] = {
        "open": lambda path, *_: opened("open", path),
        "os.listdir": lambda path, *_: opened("list", path),
        "os.scandir": lambda path, *_: opened("list", path),
        "os.chdir": lambda path, *_: opened("go to", path),
        "os.kill": signalled,
        "socket.connect": lambda _, address: connected(address),
        "socket.getaddrinfo": lambda host, port, *_: connected((host, port)),
    }

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        look = watched.get(event)
        if look is not None:
            with contextlib.suppress(Exception):  # else it would refuse what it only looks at
                look(*arguments)

    sys.addaudithook(hook)


def _is_the_students_doing() -> bool:
    """Whether the nearest code beyond the standard library is neither a library's nor ours."""
    frame = sys._getframe(1)
    while frame is not None:
        name, function = frame.f_code.co_filename, frame.f_code.co_name
        passed_on = name == __file__ or function == "_modified_open"  # what IPython calls `open`
        if not passed_on and not name.startswith("<frozen"):
            if name.startswith((*_SITE, "/grader/")):
                return False
            if not name.startswith(_STDLIB):
                return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
