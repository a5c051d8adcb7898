"""Warm kernels: forked in the sandbox from a process that has imported what they need.

`WarmProvisioner` is how jupyter_client starts one, for a `WarmKernelManager`, which nbclient is
given as it would be any other manager.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import json
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from queue import Empty
from typing import IO, Any

import zmq
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase, KernelProvisionerFactory
from jupyter_client.session import Session, json_unpacker
from traitlets import Type

from autograder.course import Trouble
from autograder.runner import sandbox
from autograder.runner.cgroups import Walls, number_here
from autograder.runner.sandbox import Limits

_log = logging.getLogger("autograder.kernel")
KERNEL = "autograder"
PROVISIONER = "autograder-warm"
MOST_WAITING, LARGEST_MESSAGE = 50, 16 * 2**20  # messages that came and were not read; bytes
PREFIX, YOUNG = "ag-", 3600.0  # of a nursery's folder: its name, and seconds of age
WARMING = 120.0  # seconds for the imports
NURSERY_ENDED = "the nursery ended"
OUR_FAULTS = (NURSERY_ENDED, "it could not be")  # put into a sandbox, or started
MOST_NOTICES = 50  # that one kernel's end is told of
ENDING = 5.0  # seconds for the nursery to end with its kernels

# Here, and not in the package's metadata: only our own manager can use it.
KernelProvisionerFactory.provisioners[PROVISIONER] = EntryPoint(
    PROVISIONER, f"{__name__}:WarmProvisioner", KernelProvisionerFactory.GROUP_NAME
)


@dataclass
class Started:
    """What is known on this side of a kernel."""

    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    status: int | None = None
    reason: str = ""
    notices: list[tuple[str, str]] = field(default_factory=list)  # kind and text, as told
    walls: Walls | None = None
    limits: Limits | None = None

    @property
    def is_our_fault(self) -> bool:
        """Whether it ended because the nursery did, or could not make it."""
        return self.reason.startswith(OUR_FAULTS)

    def end(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason
        if self.walls is not None:
            if not reason and self.limits and self.walls.were_too_narrow:
                self.reason = self.limits.too_much_memory
            self.walls.close()
        self.began.set()
        self.ended.set()


def place_of_nurseries() -> Path:
    """Short, because the path of a socket may have 107 characters; and not in /tmp where there is
    another, because each kernel has a /tmp of its own."""
    return Path("/var/tmp" if os.access("/var/tmp", os.W_OK) else tempfile.gettempdir()).resolve()


class Nursery:
    """This side of the process that forks kernels; one serves all threads of a run."""

    def __init__(self) -> None:
        sandbox.require_sandbox()
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place_of_nurseries()))
        self.lives = _locked(self.folder / "lives")
        sweep(self.folder.parent)
        self.boxes = self.folder / "boxes"
        self.boxes.mkdir()
        sandbox.lay_out_code(self.folder / "code")
        self.kernels: dict[str, Started] = {}
        self.ready = threading.Event()  # it is warm, or has ended before it was
        self.is_warm = False
        self._lock = threading.Lock()
        self._count = 0
        self._start()
        atexit.register(self.close)

    def _start(self) -> None:
        self.line, theirs = socket.socketpair()
        begun: Future[subprocess.Popen[bytes]] = Future()
        threading.Thread(target=self._tend, args=(theirs, begun), daemon=True).start()
        self.process = begun.result()

    def _tend(self, theirs: socket.socket, begun: Future[subprocess.Popen[bytes]]) -> None:
        """Start it, listen to it and wait for it in one thread, with which it would die."""
        try:
            process = self._begin(theirs)
        except BaseException as error:
            return begun.set_exception(error)
        begun.set_result(process)
        self._listen()
        process.wait()

    def _begin(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        errors = (self.folder / "errors").open("wb")

        def give_the_line() -> None:
            os.dup2(theirs.fileno(), 3)

        with theirs, errors:
            return subprocess.Popen(
                sandbox.command(self.boxes, self.folder / "code"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(3,) if theirs.fileno() == 3 else (theirs.fileno(), 3),
                preexec_fn=give_the_line,
            )

    def _listen(self) -> None:
        with self.line.makefile("rb") as lines:
            for line in lines:
                said = json.loads(line)
                if "ready" in said:
                    self.is_warm = True
                    self.ready.set()
                elif "started" in said:
                    started = self.kernels[said["started"]]
                    self._wall_in(started, said["pid"])
                    started.began.set()
                elif "noticed" in said:
                    notices = self.kernels[said["noticed"]].notices
                    if len(notices) < MOST_NOTICES:
                        notices.append((said["kind"], said["text"]))
                elif "ended" in said:
                    self.kernels[said["ended"]].end(said["status"], said["reason"])
        for started in self.kernels.values():
            if not started.ended.is_set():
                started.end(1, NURSERY_ENDED)
        self.ready.set()

    def _wall_in(self, started: Started, inside: int) -> None:
        """Into groups of its own, before anything of a student's runs in it."""
        if started.walls is not None and started.walls.folders:
            process = number_here(self.process.pid, inside)
            if process is not None:
                started.walls.take(process)

    def wait_until_warm(self) -> None:
        self.ready.wait(WARMING)
        if not self.is_warm:
            said = (self.folder / "errors").read_text(errors="replace").strip().splitlines()
            raise Trouble(f"Kernels cannot be started in the sandbox: {said[-1] if said else '?'}")

    @contextlib.contextmanager
    def box(self, files: dict[str, bytes]) -> Iterator[Path]:
        """A folder for one kernel: `work`, with these files in it, and `connection`."""
        with self._lock:
            self._count += 1
            folder = self.boxes / str(self._count)
        for place in (folder, folder / "work", folder / "connection"):
            place.mkdir()
        for name, data in files.items():
            (folder / "work" / name).write_bytes(data)
        try:
            yield folder
        finally:
            remove(folder)

    def start(
        self, box: Path, connection: str, judge: int, limits: Limits, arguments: list[str]
    ) -> Started:
        self.wait_until_warm()
        walls = Walls(limits.wall, limits.memory_wall)
        started = self.kernels[box.name] = Started(walls=walls, limits=limits)
        request = {
            "start": box.name,
            "folder": str(box),
            "connection": connection,
            "arguments": arguments,
            "limits": limits.as_data(),
        }
        try:
            self._send(request, [judge])
        except OSError:  # it has just ended
            started.end(1, NURSERY_ENDED)
        return started

    def signal(self, name: str, number: int) -> None:
        with contextlib.suppress(OSError):
            self._send({"signal": int(number), "to": name})

    def _send(self, request: dict[str, Any], descriptors: list[int] | None = None) -> None:
        data = json.dumps(request).encode() + b"\n"
        with self._lock:
            socket.send_fds(self.line, [data], descriptors or [])

    def close(self) -> None:
        """At the end of the line it ends itself, and its kernels; where it does not, it is ended.

        In this order because what processes took is known only of those that were waited for.
        """
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        try:
            self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.lives.close()
        remove(self.folder)


def remove(folder: Path) -> None:
    """With all in it, however deep: a student may have made folders in folders without an end, in
    which shutil.rmtree reaches Python's limit on calls."""
    if folder.exists():
        try:
            shutil.rmtree(folder)
        except (OSError, RecursionError):
            subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)


def _locked(path: Path) -> IO[str]:
    """The file, open, and locked for as long as this process lives."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def sweep(place: Path) -> None:
    """Remove what the nurseries of processes that were killed have left there."""
    for folder in place.glob(f"{PREFIX}*"):
        try:
            if not (folder / "lives").exists():
                if time.time() - folder.stat().st_mtime < YOUNG:
                    continue  # one that is just being made
            else:
                _locked(folder / "lives").close()
            remove(folder)
        except OSError:  # somebody else's, or one that lives
            continue


_nursery: Nursery | None = None
_making = threading.Lock()
_stopped = threading.Event()


def stop_kernels() -> None:
    """End all kernels, and start no more in this process."""
    _stopped.set()
    if _nursery is not None:
        _nursery.process.kill()


def the_nursery() -> Nursery:
    """This process's nursery, started where there is none that lives."""
    global _nursery
    with _making:
        if _stopped.is_set():
            raise KeyboardInterrupt  # by whom or what it is asked for, it ends as the run does
        if _nursery is None or _nursery.process.poll() is not None:
            _nursery = Nursery()
        return _nursery


class WarmSpecs(KernelSpecManager):
    """Knows one kernel, whatever a notebook asks for."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(
            argv=[],
            display_name="Python 3 (sandboxed)",
            language="python",
            metadata={"kernel_provisioner": {"provisioner_name": PROVISIONER}},
        )


class TolerantChannel(AsyncZMQSocketChannel):
    """Gives for a message that is malformed, whoever sent it, one that answers nothing."""

    async def _recv(self, **given: Any) -> dict[str, Any]:  # type: ignore[override]
        try:
            message = await super()._recv(**given)
            if _is_sound(message):
                return message
        except zmq.ZMQError:
            raise
        except Exception:  # whatever frames of another's making bring about
            _log.debug("a message was left out", exc_info=True)
        return {"msg_type": "malformed", "msg_id": "", "buffers": []} | {name: {} for name in PARTS}


PARTS = ("header", "parent_header", "metadata", "content")


def _is_sound(message: dict[str, Any]) -> bool:
    named = isinstance(message["msg_type"], str)
    return named and all(isinstance(message[name], dict) for name in PARTS)


def without_date(data: bytes) -> Any:
    """A part of a message. Nobody here asks when one was made, and to read the two dates of each
    takes as long as to read all the rest."""
    part = json_unpacker(data)
    if isinstance(part, dict) and "msg_type" in part:  # a header
        part.pop("date", None)
    return part


class TolerantKernelClient(AsyncKernelClient):
    """Lets no message of a kernel's bring the grader down."""

    shell_channel_class = Type(TolerantChannel)
    iopub_channel_class = Type(TolerantChannel)
    stdin_channel_class = Type(TolerantChannel)
    control_channel_class = Type(TolerantChannel)

    def start_channels(self, *given: bool, **named: bool) -> None:
        """What a kernel says waits there and not here; at a message that is larger than we can
        take the line is cut, and what was to come on it is lost."""
        self.context.setsockopt(zmq.RCVHWM, MOST_WAITING)
        self.context.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        super().start_channels(*given, **named)


class WarmKernelClient(TolerantKernelClient):
    """Is ready as soon as the kernel answers and is heard. jupyter_client's own then listens until
    nothing has come for 0.2 s; but what comes is told apart by what it answers."""

    async def _async_wait_for_ready(self, timeout: float | None = None) -> None:
        ends = time.monotonic() + (WARMING if timeout is None else timeout)
        while time.monotonic() < ends:
            self.kernel_info()
            with contextlib.suppress(Empty):
                reply = await self.shell_channel.get_msg(timeout=1)
                if reply["msg_type"] == "kernel_info_reply":
                    await self.iopub_channel.get_msg(timeout=1)
                    return
            if not await self.is_alive():
                raise RuntimeError("The kernel ended before it was ready.")
        raise RuntimeError("The kernel did not answer.")

    wait_for_ready = _async_wait_for_ready


class WarmKernelManager(AsyncKernelManager):
    """A kernel in `box`, beside the judge whose descriptor is `judge`."""

    box: Path
    judge: int
    limits: Limits
    started: Started | None = None  # stays when the kernel has ended

    @classmethod
    def of(cls, box: Path, judge: int, limits: Limits) -> WarmKernelManager:
        manager = cls(
            kernel_name=KERNEL,
            kernel_spec_manager=WarmSpecs(),
            transport="ipc",
            connection_file=str(box / "connection" / "kernel.json"),
            client_factory=WarmKernelClient,
            session=Session(unpacker=f"{__name__}.without_date"),
        )
        manager.box, manager.judge, manager.limits = box, judge, limits
        return manager

    async def _async_wait(self, pollinterval: float = 0.005) -> None:
        await super()._async_wait(pollinterval)


class WarmProvisioner(KernelProvisionerBase):
    """Has the nursery fork a kernel, and speaks of it as of a process."""

    started: Started | None = None

    @property
    def has_process(self) -> bool:
        return self.started is not None

    async def poll(self) -> int | None:
        if self.started is None or self.started.ended.is_set():
            return self.started.status if self.started else 0
        return None

    async def wait(self) -> int | None:
        while await self.poll() is None:
            await asyncio.sleep(0.01)
        status = await self.poll()
        self.started = None
        return status

    async def send_signal(self, signum: int) -> None:
        if self.started is not None:
            the_nursery().signal(self._manager.box.name, signum)

    async def kill(self, restart: bool = False) -> None:
        await self.send_signal(9)

    async def terminate(self, restart: bool = False) -> None:
        await self.send_signal(9)  # nothing of a student's is asked twice

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        self._manager.write_connection_file()
        self.connection_info = self._manager.get_connection_info()
        return await super().pre_launch(cmd=[], **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        manager = self._manager
        nursery = await asyncio.to_thread(the_nursery)
        self.started = await asyncio.to_thread(
            nursery.start,
            manager.box,
            manager.connection_file,
            manager.judge,
            manager.limits,
            kwargs.get("extra_arguments") or [],
        )
        manager.started = self.started
        await asyncio.to_thread(self.started.began.wait, WARMING)
        await self._until_it_listens()
        return self.connection_info

    async def _until_it_listens(self) -> None:
        """Whoever knocks earlier waits 0.1 s before knocking again (zmq's interval)."""
        info = self.connection_info
        ports = [port for name, port in info.items() if name.endswith("_port")]
        sockets = [f"{info['ip']}-{port}" for port in ports]
        ends = time.monotonic() + WARMING
        while time.monotonic() < ends and await self.poll() is None:
            if all(map(os.path.exists, sockets)):
                return
            await asyncio.sleep(0.003)

    async def cleanup(self, restart: bool = False) -> None:
        return None

    @property
    def _manager(self) -> WarmKernelManager:
        assert isinstance(self.parent, WarmKernelManager)
        return self.parent
