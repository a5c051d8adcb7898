"""ipykernel's kernel, without what it does as it starts, and for each cell, for nobody here.

Runs inside the sandbox: `nursery.py` imports it once, and starts it in each kernel that it forks.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import zmq
from ipykernel import iostream, ipkernel, zmqshell
from ipykernel.kernelapp import IPKernelApp
from traitlets import Type
from traitlets.config import Config
from traitlets.config.loader import DeferredConfigString

MOST_WAITING = 50_000  # messages of a kernel's, in its own memory


class ZMQInteractiveShell(zmqshell.ZMQInteractiveShell):
    """Transforms a cell once: ipykernel does it to see whether the cell awaits, IPython then again.

    It goes by the name of ipykernel's own: notebooks tell by it where they run.
    """

    __module__ = zmqshell.__name__
    _transformed: tuple[str, str] | None = None

    def init_events(self) -> None:
        super().init_events()
        self.events.register("pre_execute", self._forget)

    def _forget(self) -> None:
        self._transformed = None  # what runs now may change how cells are transformed

    def transform_cell(self, raw_cell: str) -> str:
        if self._transformed is None or self._transformed[0] != raw_cell:
            self._transformed = raw_cell, super().transform_cell(raw_cell)
        return self._transformed[1]


class OutStream(iostream.OutStream):
    """Waits for the thread that sends only where something was written since it last did: after
    each cell it is asked four times."""

    _is_written = False

    def write(self, string: str) -> int | None:  # type: ignore[override]  # as ipykernel does
        written = super().write(string)
        self._is_written = True
        return written

    def flush(self) -> None:
        if self._is_written:
            self._is_written = False
            super().flush()


class Kernel(ipkernel.IPythonKernel):
    shell_class = Type(ZMQInteractiveShell)

    def __init__(self, **given: Any) -> None:
        # It lists the files of all modules for a debugger, and to touch each module copies the page
        # on which it lies, which this process shares with the one that it was forked from.
        ipkernel.sys = SimpleNamespace(modules={})  # type: ignore[assignment]
        try:
            super().__init__(**given)
        finally:
            ipkernel.sys = sys


class KernelApp(IPKernelApp):
    kernel_class = Type(Kernel)
    outstream_class = f"{__name__}.OutStream"

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Take `--Class.trait=value` alone. A parser of all that a command line may hold is made
        anew in each kernel, from what 50 classes may be told."""
        told = Config()
        for argument in argv or []:
            name, _, value = argument.removeprefix("--").partition("=")
            section, _, trait = name.partition(".")
            told[section][trait] = DeferredConfigString(value)
        self.update_config(told)

    def load_config_file(self, *given: Any, **named: Any) -> None:
        """There is none here but what a submission might bring."""

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Let much wait until the grader has heard it: beyond 1,000 messages zmq drops what comes,
        and with it, it may be, the word that a cell has ended."""
        context.setsockopt(zmq.SNDHWM, MOST_WAITING)
        super().init_iopub(context)
