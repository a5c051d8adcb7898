"""Runs inside the sandbox: imports what kernels need once, and forks a kernel for each request.

It is started as a script and imports nothing of this package but what lies beside it:
`lookout.py` and `warm_kernel.py`. The rest is not in the sandbox.
Requests and reports are JSON lines over a socket that it inherits as descriptor 3:

    {"start": id, "folder": ..., "connection": ..., "arguments": [...], "limits": {...}}
                                                                with the judge's descriptor
    {"signal": number, "to": id}
    -> {"ready": true}, {"started": id, "pid": number},
       {"ended": id, "status": status, "reason": text},
       {"noticed": id, "kind": kind, "text": text}     (what `lookout.py` in the kernel tells)

Each kernel is process 1 of a process namespace of its own, in user, mount, network, IPC and UTS
namespaces of its own: it sees neither its siblings nor this process, and all that it started dies
with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import json
import logging
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from typing import Any

import lookout  # type: ignore[import-not-found]

LINE = 3  # the inherited descriptor
DESCRIPTOR_VARIABLE = "AUTOGRADER_JUDGE_DESCRIPTOR"
# Nothing of matplotlib_inline, whose backend takes hold of the shell as it is imported: there is
# none yet.
MODULES = (
    "autograder_student",
    "faulthandler",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.core.pylabtools",
    "IPython.extensions.storemagic",
    "IPython.utils.wildcard",
    "ipykernel.debugger",
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "ipywidgets",
    "matplotlib.pyplot",
    "stack_data",
    "torch.nn.functional",
    "tornado.platform.asyncio",
    "warm_kernel",
    "zmq.utils.garbage",
)
PACKAGES = sysconfig.get_paths()["purelib"]
LOOK_EVERY = 0.05  # seconds between two looks at what the kernels hold
NICENESS = 10  # of a kernel: whoever looks after them comes first, or forks win the race
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
KEYCTL, JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}, 1
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Process:
    """One of a kernel's, as it was seen: bytes that it holds, those too that it shares."""

    number: str
    parent: int
    namespace: str
    size: int


@dataclass
class Kernel:
    """A kernel that runs: the process that waits for it, the kernel itself, and its limits."""

    keeper: int
    pid: int
    namespaces: set[str]  # its own of processes, and those that were made in it
    limits: dict[str, Any]
    notices: int  # where it tells what it tried
    told: bytes = b""
    reason: str = ""

    def take_in(self, processes: dict[int, Process]) -> None:
        """Know a namespace that was made in one of ours: its first process has its parent there,
        as long as the namespace is."""
        before = 0
        while before < len(self.namespaces):
            before = len(self.namespaces)
            for process in processes.values():
                parent = processes.get(process.parent)
                if parent is not None and parent.namespace in self.namespaces:
                    self.namespaces.add(process.namespace)


def main() -> None:
    line = socket.socket(fileno=LINE)
    os.set_inheritable(LINE, False)
    import_what_kernels_need()
    Nursery(line).serve()
    os._exit(0)  # nothing is left to be done, and to take the libraries down would take a while


def import_what_kernels_need() -> None:
    """Import and draw one figure, but compute nothing: a fork after that would hang."""
    for name in MODULES:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)  # between operations it stays unset: it can be set once only
    debugger = importlib.import_module("ipykernel.debugger")
    debugger._is_debugpy_available = False  # type: ignore[attr-defined]  # nobody debugs here
    importlib.import_module("autograder_student").warm_up()
    draw_a_figure()
    # A kernel's rubbish is then looked for among its own objects alone: to look at all of these
    # would copy each page that they lie on.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 20, 20)  # and not after every 700 objects


def draw_a_figure() -> None:
    """With what figures in notebooks have, so that fonts and formulas are known to each kernel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    lines, powers, image = figure.subplots(1, 3)
    lines.plot([0, 1], label="a")
    lines.set(xlabel="$x$", title="a")
    lines.legend()
    powers.loglog([10.0**number for number in range(-4, 5)])
    figure.colorbar(image.imshow([[0.0, 1.0]]), ax=image)
    figure.savefig(io.BytesIO(), bbox_inches="tight")


class Nursery:
    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.kernels: dict[str, Kernel] = {}
        self.waiting = b""
        self.own: list[int] = []  # descriptors that no kernel is to have
        self.warm = look_at("self").size  # what each kernel is born with, and shares with all
        self.stack = stack_of("self")

    def serve(self) -> None:
        self.report(ready=True)
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        watched: list[int] = [self.line.fileno(), wake]
        self.own = [wake, waker]
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select(watched, [], [], LOOK_EVERY)
            if wake in ready:
                os.read(wake, 4096)
            if self.line.fileno() in ready and not self.read_requests():
                return self.end_all()
            self.look_after()

    def report(self, **said: Any) -> None:
        self.line.sendall(json.dumps(said).encode() + b"\n")

    def read_requests(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self.line, 65536, 8)
        if not data:
            return False
        self.waiting += data
        *lines, self.waiting = self.waiting.split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "start" in request:
                self.start(request, descriptors.pop(0))
            elif request["to"] in self.kernels:
                _kill(self.kernels[request["to"]].pid, request["signal"])
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    # ---- one kernel

    def start(self, request: dict[str, Any], judge: int) -> None:
        try:
            self.fork_a_keeper(request, judge)
        except OSError as error:  # no process can be made, or the new one has ended
            reason = f"it could not be started ({error.strerror})"
            self.report(ended=request["start"], status=1, reason=reason)

    def fork_a_keeper(self, request: dict[str, Any], judge: int) -> None:
        """Fork the process that keeps the kernel, which forks the kernel in new namespaces."""
        reading, writing = os.pipe()
        notices, telling = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        keeper = os.fork()
        if keeper == 0:
            try:
                others = [kernel.notices for kernel in self.kernels.values()]
                for descriptor in (reading, notices, *self.own, *others):
                    os.close(descriptor)
                keep(request, judge, writing, telling)
            finally:
                os._exit(1)
        for descriptor in (judge, writing, telling):
            os.close(descriptor)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.readline()  # the kernel's process id, or nothing where it failed
        name = request["start"]
        if not said:
            os.close(notices)
            os.waitpid(keeper, 0)
            return self.report(ended=name, status=1, reason="it could not be put into a sandbox")
        pid = int(said)
        namespace = os.readlink(f"/proc/{keeper}/ns/pid_for_children")
        self.kernels[name] = Kernel(keeper, pid, {namespace}, request["limits"], notices)
        self.report(started=name, pid=pid)

    def look_after(self) -> None:
        for name, kernel in list(self.kernels.items()):
            ended, status = os.waitpid(kernel.keeper, os.WNOHANG)
            self.pass_on(name, kernel)
            if ended:
                os.close(kernel.notices)
                del self.kernels[name]
                status = os.waitstatus_to_exitcode(status)
                self.report(ended=name, status=status, reason=kernel.reason)
        if self.kernels:
            self.watch()

    def pass_on(self, name: str, kernel: Kernel) -> None:
        """Report what the kernel tells, which may be anything: its code may write there too."""
        with contextlib.suppress(BlockingIOError):
            kernel.told += os.read(kernel.notices, 65536)
        *lines, kernel.told = kernel.told.split(b"\n")
        kernel.told = kernel.told[:4096]
        for line in lines[: lookout.MOST_NOTICES]:
            try:
                kind, text = json.loads(line)
                self.report(noticed=name, kind=str(kind)[:40], text=str(text)[:500])
            except (ValueError, TypeError, RecursionError):
                self.report(noticed=name, kind="malformed-message", text=repr(line[:80]))

    def end_all(self) -> None:
        for kernel in self.kernels.values():
            _kill(kernel.pid, signal.SIGKILL)
            os.waitpid(kernel.keeper, 0)

    def watch(self) -> None:
        """End what holds too many processes, or too much memory in all of them together: limits of
        the kernel's own are for one process each, and count nothing for root."""
        processes = look_at_processes()
        for kernel in self.kernels.values():
            kernel.take_in(processes)
            its = [one for one in processes.values() if one.namespace in kernel.namespaces]
            if len(its) > kernel.limits["processes"]:
                kernel.reason = f"more than {kernel.limits['processes']} processes"
            elif self.hold_more(its, kernel.limits["memory"]):
                kernel.reason = f"more than {kernel.limits['memory'] / 2**30:.1f} GiB of memory"
            else:
                continue
            _kill(kernel.pid, signal.SIGKILL)

    def hold_more(self, processes: list[Process], memory: int) -> bool:
        """Whether they hold more than that together, what they share with us apart."""
        if sum(one.size for one in processes) <= memory:
            return False
        held = 0
        for one in processes:
            with contextlib.suppress(OSError, IndexError):  # it has ended
                shares = self.warm if stack_of(one.number) == self.stack else 0
                held += max(0, one.size - shares)
        return held > memory


def look_at_processes() -> dict[int, Process]:
    """All in the sandbox. Quickly: whoever forks without end does not wait."""
    found: dict[int, Process] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry)] = look_at(entry)
    return found


def look_at(process: str) -> Process:
    """One process: memory of its own or shared with others, but no mapped files."""
    # By line feeds alone, which the system escapes in a name; a name may hold what else ends lines.
    lines = _read(f"/proc/{process}/status").split(b"\n")
    said = dict(line.split(b":", 1) for line in lines if b":" in line)
    kilobytes = sum(int(said.get(name, b"0").split()[0]) for name in (b"RssAnon", b"RssShmem"))
    namespace = os.readlink(f"/proc/{process}/ns/pid")
    return Process(process, int(said[b"PPid"]), namespace, kilobytes * 1024)


def stack_of(process: str) -> bytes:
    """Where its stack begins: as here in what was forked from here, elsewhere in what began anew,
    which shares nothing with us."""
    return _read(f"/proc/{process}/stat").rpartition(b")")[2].split()[25]


def keep(request: dict[str, Any], judge: int, writing: int, telling: int) -> None:
    """In the keeper: new namespaces, the kernel in them, and its end as our own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(LINE)
    os.setsid()
    uid, gid = os.getuid(), os.getgid()
    kinds = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    _checked(_libc.unshare(kinds))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(writing)
            ours.close()
            _checked(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
            os.setsid()  # what it sends to its group would reach the keeper, whatever the namespace
            be_a_kernel(request, judge, telling, theirs)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)
    os.write(writing, f"{pid}\n".encode())
    for descriptor in (writing, judge, telling):
        os.close(descriptor)
    theirs.close()
    if ours.recv(1):  # its sockets are made; or nothing, where it has ended before
        seal(os.path.join(request["folder"], "connection"))
        ours.send(b"1")
    ours.close()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:  # so that a signal is told from a status
        signal.signal(-code, signal.SIG_DFL) if -code not in (9, 19) else None
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def be_a_kernel(request: dict[str, Any], judge: int, telling: int, keeper: socket.socket) -> None:
    """In the kernel's process: hide the rest, set the limits, and run."""
    folder, limits = request["folder"], request["limits"]
    os.nice(NICENESS)
    _libc.syscall(KEYCTL.get(os.uname().machine, -1), JOIN_SESSION_KEYRING, None)
    hide_the_rest(folder, limits["disk"])
    give_up_rights()
    set_limits(limits)
    sink = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    os.dup2(judge, LINE)
    # By name alone: others belong to objects that were forked along, an open font for one, and
    # would be closed by them once more when their numbers are somebody else's.
    os.close(judge)
    os.set_inheritable(LINE, False)
    work = os.path.join(folder, "work")
    os.environ |= {
        "HOME": work,
        "PWD": work,
        "IPYTHONDIR": os.path.join(work, ".ipython"),
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(work, ".inductor"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        DESCRIPTOR_VARIABLE: str(LINE),
    }
    reseed()
    lookout.keep_watch(work, telling)
    os.chdir(work)
    sys.path.append("")  # last: a torch.py beside the notebook shadows nothing
    connection = request["connection"]
    sys.argv = [os.path.join(PACKAGES, "ipykernel_launcher.py"), "-f", connection]
    app = importlib.import_module("warm_kernel").KernelApp.instance()
    app.log.setLevel(logging.WARNING)  # else it makes records of what is never shown
    # The history in memory: as a file it would lie on a disk that may be full.
    given = [
        f"--IPKernelApp.connection_file={connection}",
        "--HistoryManager.hist_file=:memory:",
        "--HistoryManager.db_cache_size=1000",
    ]
    app.initialize(given + request["arguments"])
    with keeper:
        keeper.send(b"1")
        if keeper.recv(1):
            app.start()
    os._exit(0)


def seal(folder: str) -> None:
    """Nothing more is written there: it lies on the machine's disk, which has no limit."""
    _mount(None, folder, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, None)


def hide_the_rest(folder: str, disk: int) -> None:
    """Only this kernel's folder stays. All that it may write goes to one small disk in memory."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE, None)
    work, parent = os.path.join(folder, "work"), os.path.dirname(folder)
    given = {name: _read(os.path.join(work, name)) for name in os.listdir(work)}
    connection = os.path.join(folder, "connection")
    # Held open while its parent is hidden, and bound again from there.
    held = os.open(connection, os.O_PATH)
    _mount("tmpfs", parent, "tmpfs", MS_NOSUID | MS_NODEV, f"size={disk},mode=700")
    os.makedirs(connection)
    os.makedirs(work)
    _mount(f"/proc/self/fd/{held}", connection, None, MS_BIND, None)
    os.close(held)
    for name, data in given.items():
        with open(os.path.join(work, name), "wb") as file:
            file.write(data)
    put_in_place_of("/dev/shm", os.path.join(folder, "shm"))
    if any(place.startswith("/tmp/") for place in (parent, sys.prefix, sys.base_prefix)):
        # What lies there must stay in sight; but nothing may be left there for others.
        _mount(None, "/tmp", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, None)
        os.environ["TMPDIR"] = work
        tempfile.tempdir = None  # what was found before the fork
    else:
        put_in_place_of("/tmp", os.path.join(folder, "tmp"))
    _mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "size=0,mode=555")


def put_in_place_of(place: str, folder: str) -> None:
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    _mount(folder, place, None, MS_BIND, None)


def give_up_rights() -> None:
    """Drop what made the namespaces, and could take away again what was put over the rest."""
    for capability in range(64):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one
    _checked(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    _checked(_libc.capset(header, struct.pack("6I", *[0] * 6)))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def set_limits(limits: dict[str, Any]) -> None:
    for kind, limit in (
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_CPU, limits["cpu"]),
        (resource.RLIMIT_NPROC, limits["wall"]),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        limit = int(limit) if most == resource.RLIM_INFINITY else min(int(limit), most)
        resource.setrlimit(kind, (limit, limit))


def reseed() -> None:
    """Each kernel begins with chance of its own, as one that is started cold does."""
    import numpy
    import torch

    random.seed()
    numpy.random.seed()
    torch.seed()


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> None:
    given = [text.encode() if text is not None else None for text in (source, target, kind)]
    _checked(_libc.mount(*given, ctypes.c_ulong(flags), data.encode() if data else None))


def _checked(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


if __name__ == "__main__":
    main()
