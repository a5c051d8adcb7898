"""What a kernel may see and hold: the sandbox around all of them, and the limits of each.

bubblewrap gives the outer sandbox: no network, and of the machine's files the interpreter, its
libraries and fonts, read only. Inside it `nursery.py` gives each kernel namespaces of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from autograder.build.bundle import BUNDLE_FILE, bundle
from autograder.course import GradingOptions, Trouble

HOW_TO_GET_IT = (
    "Kernels are run in a sandbox made by bubblewrap, which is missing. Install it (Debian, "
    "Ubuntu: `sudo apt-get install bubblewrap`; Fedora: `sudo dnf install bubblewrap`), or ask for "
    "`--no-sandbox`: students' code then runs with your rights."
)
GIB = 2**30
# What programs and libraries are found in; a place that a machine lacks is left out.
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin")
SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/fonts",
    "/etc/localtime",
    "/etc/alternatives",
)
HIDDEN = ("autograder", "solutions")  # packages that hold what no student may see


@dataclass(frozen=True)
class Limits:
    """Of one kernel: bytes, seconds and processes, all that it starts included."""

    memory: int = 4 * GIB
    disk: int = GIB // 2
    file: int = GIB // 4
    processes: int = 64
    cpu: int = 900

    @classmethod
    def of(cls, options: GradingOptions) -> Limits:
        return cls(
            int(options.memory_limit * GIB),
            int(options.disk_limit * GIB),
            int(options.disk_limit * GIB / 2),
            options.process_limit,
            int(options.cpu_limit),
        )

    @property
    def wall(self) -> int:
        """Processes and threads beyond which none is made. The limit on processes is lower, so that
        a kernel that reaches it is seen and ended, and not left to spin at the wall."""
        return 2 * self.processes

    @property
    def memory_wall(self) -> int:
        """Bytes beyond which none are given, in whatever they are held: those of its disk too, and
        copies of what it was born with."""
        return self.memory + self.disk + GIB // 2

    @property
    def too_much_memory(self) -> str:
        return f"more than {self.memory / GIB:.1f} GiB of memory"

    def as_data(self) -> dict[str, int]:
        return asdict(self) | {"wall": self.wall}


@cache
def why_unavailable() -> str:
    """In a sentence, why there can be no sandbox here; empty where there can."""
    if shutil.which("bwrap") is None:
        return HOW_TO_GET_IT
    tried = subprocess.run(
        [*_outer(), "--ro-bind", "/", "/", "--", "unshare", "--user", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
    )
    if tried.returncode == 0:
        return ""
    said = tried.stderr.strip().splitlines()
    return (
        f"bubblewrap cannot make a sandbox on this machine ({said[-1] if said else 'no reason'}). "
        "User namespaces may be switched off (sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0)."
    )


def require_sandbox() -> None:
    """Trouble, with what to do, where kernels cannot be put into a sandbox."""
    if reason := why_unavailable():
        raise Trouble(reason)


def _outer() -> list[str]:
    return [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--as-pid-1",  # bubblewrap's own process 1 is not waited for, and its CPU time is lost
        "--new-session",
        "--clearenv",
        *("--uid", "1000", "--gid", "1000"),
    ]


def command(boxes: Path, code: Path) -> list[str]:
    """The nursery in its sandbox: `boxes` is where kernels' folders lie, `code` what it runs."""
    arguments = [*_outer(), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for place in (*SYSTEM, *SETTINGS):
        path = Path(place)
        if path.is_symlink() and not place.startswith("/etc/"):
            arguments += ["--symlink", os.readlink(path), place]
        elif path.exists():
            arguments += ["--ro-bind", place, place]
    for place in _of_python():
        arguments += ["--ro-bind", place, place]
    for package in _ours():
        arguments += ["--tmpfs", str(package)]
    arguments += ["--bind", str(boxes), str(boxes), "--ro-bind", str(code), "/grader"]
    for name, value in environment().items():
        arguments += ["--setenv", name, value]
    arguments += ["--remount-ro", "/"]  # else it would be a place where kernels could meet
    return [*arguments, "--chdir", "/", "--", sys.executable, "-s", "-P", "/grader/nursery.py"]


def environment() -> dict[str, str]:
    """Of a kernel: nothing of the grader's."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "USER": "student",  # what asks for the user's name need not find a list of users
        "LOGNAME": "student",
        "JPY_PARENT_PID": "1",  # a sign of Jupyter
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": "/grader/matplotlib",
        "OMP_NUM_THREADS": "1",  # notebooks run side by side
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": "/grader",
    }


def _of_python() -> list[str]:
    """The folders of the interpreter and its environment, the outer ones alone."""
    found = {sys.prefix, sys.base_prefix, sysconfig.get_paths()["purelib"]}
    found |= {str(Path(sys.base_prefix).resolve()), str(Path(sys.executable).resolve().parent)}
    places = sorted({place for place in found if not place.startswith(("/usr/", "/lib"))}, key=len)
    outer: list[str] = []
    for place in places:
        if place != "/usr" and not any(place.startswith(other + "/") for other in outer):
            outer.append(place)
    return outer


def _ours() -> list[Path]:
    """Copies of our own packages among the libraries, to be hidden."""
    libraries = {Path(sysconfig.get_paths()[name]) for name in ("purelib", "platlib")}
    return [place / name for place in libraries for name in HIDDEN if (place / name).is_dir()]


def lay_out_code(folder: Path) -> None:
    """What the sandbox holds of this project: the nursery and the students' side."""
    folder.mkdir()
    for name in ("nursery.py", "lookout.py", "warm_kernel.py"):
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / BUNDLE_FILE).write_text(bundle(), encoding="utf-8")
    fonts = folder / "matplotlib"
    fonts.mkdir()
    import matplotlib

    for path in Path(matplotlib.get_cachedir()).glob("fontlist-*.json"):
        shutil.copy(path, fonts)  # else each nursery would look for all fonts anew
