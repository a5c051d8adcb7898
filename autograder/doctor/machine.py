"""Checks of the machine: what is installed, and what room there is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from autograder.doctor.findings import (
    GIB,
    MIB,
    Said,
    Site,
    gib,
    ok,
    problem,
    programs,
    together,
    warning,
)

OLDEST_PYTHON = (3, 11)
ONLY_FOR_TESTS = {"pytest", "pytest-xdist", "hypothesis", "nbval", "ruff", "mypy", "setuptools"}
SET_UP = "Run `make setup`, or `pip install -r requirements.txt -c constraints.txt`."
CONFIG = "nbgrader_config.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCANT, TOO_LITTLE = GIB, 100 * MIB  # bytes free on a disk
LITTLE_SHARED_MEMORY = 64 * MIB
OPEN_FILES = 1024  # of a kernel
FILES_OF_A_WORKER = 40  # that the grading process holds open; 34 were seen
LONGEST_SOCKET_PATH = 107  # bytes: the kernel's sockaddr_un, less the zero that ends it
SIGNS = "✘ ⚑ — é"  # of what tables and names hold


def check_python(site: Site) -> Said:
    version = platform.python_version()
    found = f"Python {version} ({sys.executable})"
    if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_PYTHON:
        return ok(found)
    return problem(found, "Install Python 3.11 or newer; `make setup PYTHON=python3.12` takes it.")


def check_packages(site: Site) -> Said:
    """Against the pins; a build's own suffix, as in 2.13.0+cpu, makes no other version."""
    wanted = _pins(site.root)
    if not wanted:
        return warning("no pinned version was found", "Put requirements.txt beside the course.")
    missing, other = [], []
    for name, pinned in wanted.items():
        try:
            installed = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if installed != pinned:
            other.append(f"{name} is {installed}, known to work is {pinned}")
    if not missing and not other:
        return ok(f"{len(wanted)} packages, each as pinned")
    found = "; ".join([*(f"{name} is missing" for name in missing), *other])
    stops = any(name not in ONLY_FOR_TESTS for name in missing)
    return problem(found, SET_UP) if stops else warning(found, SET_UP)


def _pins(root: Path) -> dict[str, str]:
    """As the course's requirements.txt says; without one, as it said when this was installed."""
    file = root / "requirements.txt"
    if file.is_file():
        lines = file.read_text(encoding="utf-8").splitlines()
    else:
        try:
            lines = importlib.metadata.requires("transformer-course") or []
        except importlib.metadata.PackageNotFoundError:
            return {}
    found = (re.match(r"\s*([\w.-]+)\s*==\s*([\w.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def check_alembic(site: Site) -> Said:
    place = shutil.which("alembic", path=programs())
    if place:
        return ok(place)
    return problem("alembic is not beside Python or on PATH; nbgrader starts it by name", SET_UP)


def check_tools(site: Site) -> Said:
    missing = [name for name in ("git", "make") if shutil.which(name) is None]
    if not missing:
        return ok("git and make are there")
    names = " and ".join(missing)
    todo = f"Install {names} (`sudo apt-get install {' '.join(missing)}`); grading needs neither."
    return warning(f"{names} not found", todo)


def check_browser(site: Site) -> Said:
    place = next(filter(None, map(shutil.which, BROWSERS)), None)
    if place:
        return ok(place)
    todo = "Install it (`sudo apt-get install chromium`) to have `make test` look at pages."
    return warning("no Chromium was found; grading needs none", todo)


def check_memory(site: Site) -> Said:
    """A kernel may hold its limit, and as many kernels run as there are workers."""
    there, each = _memory(), site.options.memory_limit * GIB
    found = f"{gib(there)}, for {site.workers} kernels of at most {gib(each)} each"
    if site.workers * each <= there:
        return ok(found)
    fitting = int(there // each) if each > 0 else 0
    todo = (
        f"Set c.GradingOptions.workers = {fitting} in {CONFIG}, or a lower memory_limit."
        if fitting
        else f"Set c.GradingOptions.workers = 1 and a lower memory_limit in {CONFIG}."
    )
    return warning(found, todo)


def _memory() -> int:
    """Bytes of the machine, or of the container that this runs in."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for place in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _of_container(place)
        sizes += [int(text)] if text.isdigit() else []
    return min(sizes)


def _of_container(name: str) -> str:
    try:
        return Path("/sys/fs/cgroup", name).read_text().strip()
    except OSError:
        return ""


def check_cores(site: Site) -> Said:
    usable = _cores()
    found = f"{usable:g} usable, {site.workers} notebooks side by side"
    if site.workers <= usable:
        return ok(found)
    todo = f"Set c.GradingOptions.workers = {max(1, int(usable))} in {CONFIG}: time runs for each."
    return warning(found, todo)


def _cores() -> float:
    cores = float(len(os.sched_getaffinity(0)))
    share, _, period = _of_container("cpu.max").partition(" ")
    return min(cores, int(share) / int(period)) if share.isdigit() else cores


def check_own_limits(site: Site) -> Said:
    """What `ulimit` leaves: a kernel is given the less of that and of what the course says."""
    options = site.options
    low = [
        f"{name} {most / unit:g} of {asked / unit:g} (ulimit -H{letter})"
        for name, letter, kind, asked, unit in (
            ("GiB of memory", "d", resource.RLIMIT_DATA, options.memory_limit * GIB, GIB),
            ("GiB of address space", "v", resource.RLIMIT_AS, options.memory_limit * GIB, GIB),
            ("GiB in a file", "f", resource.RLIMIT_FSIZE, options.disk_limit * GIB / 2, GIB),
            ("seconds of CPU time", "t", resource.RLIMIT_CPU, options.cpu_limit, 1),
            ("processes", "u", resource.RLIMIT_NPROC, options.process_limit, 1),
            ("open files", "n", resource.RLIMIT_NOFILE, OPEN_FILES, 1),
        )
        if resource.RLIM_INFINITY != (most := resource.getrlimit(kind)[1]) < asked
    ]
    parts = [_open_files(site.workers)]
    if low:
        todo = f"Raise them in /etc/security/limits.conf, or ask for less in {CONFIG}."
        parts.append(warning("lower than what kernels are to have: " + ", ".join(low), todo))
    return together(parts)


def _open_files(workers: int) -> Said:
    """Of the grading process itself, which holds the sockets of all its kernels, and takes all that
    it is allowed."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = (workers + 1) * FILES_OF_A_WORKER  # one more kernel starts or ends meanwhile
    if most == resource.RLIM_INFINITY:
        return ok("any number of open files is allowed")
    if most >= needed:
        return ok(f"{most} open files are allowed, {workers} workers need {needed}")
    todo = f"Raise nofile to {needed} in /etc/security/limits.conf, or set fewer workers."
    return problem(f"{most} open files are allowed, {workers} workers need {needed}", todo)


def check_fonts(site: Site) -> Said:
    import matplotlib
    from matplotlib import font_manager

    try:
        font_manager.findfont("DejaVu Sans", fallback_to_default=False)
    except ValueError:
        return warning("matplotlib has no DejaVu Sans", "Install matplotlib anew: it brings it.")
    cache = Path(matplotlib.get_cachedir())
    lasting = not cache.name.startswith("matplotlib-")  # else it is one of this process alone
    if not lasting or not any(cache.glob("fontlist-*.json")):
        todo = "Set MPLCONFIGDIR to a folder that can be written, or each run looks for all fonts."
        return warning("matplotlib cannot keep its list of fonts", todo)
    listed = "with" if shutil.which("fc-list") else "without"
    return ok(f"DejaVu Sans, a list of fonts in {cache}, {listed} fontconfig")


def check_results(site: Site) -> Said:
    folder = site.into
    place = _nearest(folder)
    if not place.is_dir():
        return problem(f"{place} is no folder", "Name another folder with --into.")
    if not os.access(place, os.W_OK | os.X_OK):
        todo = f"Make {place} writable, or name another folder with --into."
        return problem(f"nothing can be written in {place}", todo)
    return ok(f"{folder} can be written" if place == folder else f"{folder} can be made")


def check_disk(site: Site) -> Said:
    parts = []
    for folder in dict.fromkeys([site.into, Path("/var/tmp"), Path(tempfile.gettempdir())]):
        free = shutil.disk_usage(_nearest(folder)).free
        found = f"{gib(free)} free in {folder}"
        todo = f"Free some space in {folder}."
        if free < TOO_LITTLE:
            parts.append(problem(found, todo))
        else:
            parts.append(warning(found, todo) if free < SCANT else ok(found))
    return together(parts)


def _nearest(folder: Path) -> Path:
    """What there is of a path."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def check_shared_memory(site: Site) -> Said:
    place = Path("/dev/shm")
    todo = "Mount it (`mount -t tmpfs tmpfs /dev/shm`; for docker: --shm-size=1g)."
    if not place.is_dir() or not os.access(place, os.W_OK):
        return warning(f"{place} is missing or cannot be written", todo)
    free = shutil.disk_usage(place).free
    found = f"{gib(free)} free in {place}"
    return ok(found) if free >= LITTLE_SHARED_MEMORY else warning(found, todo)


def check_socket_paths(site: Site) -> Said:
    """Kernels are spoken to by sockets in a folder of the nursery's, whose paths must be short."""
    from autograder.runner.kernels import PREFIX, place_of_nurseries

    folder = place_of_nurseries()
    longest = folder / f"{PREFIX}12345678" / "boxes" / "100000" / "connection" / "kernel-ipc-5"
    length = len(os.fsencode(longest))
    found = f"{length} of {LONGEST_SOCKET_PATH} bytes, in {folder}"
    if length <= LONGEST_SOCKET_PATH:
        return ok(found)
    return problem(found, "Make /var/tmp writable, or set TMPDIR to a folder with a short path.")


def check_locale(site: Site) -> Said:
    output, files = sys.stdout.encoding or "ascii", sys.getfilesystemencoding()
    encodings = {"output": output, "file names": files}
    odd = [f"{what} in {name}" for what, name in encodings.items() if not _can_say(SIGNS, name)]
    if not odd:
        return ok(f"output in {output}")
    todo = "Set LC_ALL=C.UTF-8, and unset PYTHONIOENCODING: names and tables hold such signs."
    return problem(f"{' and '.join(odd)} cannot say {SIGNS!a}", todo)


def _can_say(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def check_clock(site: Site) -> Said:
    """No file of ours can be from the future."""
    now = time.time()
    newest = max(path.stat().st_mtime for path in Path(__file__).parent.glob("*.py"))
    found = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now >= newest - 24 * 3600:
        return ok(found)
    todo = "Set the clock (`sudo timedatectl set-ntp true`): what is new or late is told by it."
    return warning(f"{found}, which is before the autograder itself was installed", todo)
