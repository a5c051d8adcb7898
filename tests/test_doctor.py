"""`autograder doctor`: a sound machine is found sound, and every kind of fault is named."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import TOPIC, Command
from nbgrader.api import Gradebook

from autograder.course import Course, GradingOptions
from autograder.doctor import CHECKS, UNEXPECTED, examine, look
from autograder.doctor import kernels as kernel_checks
from autograder.doctor import machine as machine_checks
from autograder.doctor.findings import GIB, MIB, OK, PROBLEM, WARNING, Finding, Said, Site, ok
from autograder.runner import kernels, sandbox


def found_by(name: str, site: Site) -> Finding:
    return look(name, CHECKS[name], site)


@pytest.fixture
def site(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A course that is sound, with a folder of results that is empty."""
    monkeypatch.chdir(course.root)
    return Site(tmp_path / "results")


@pytest.fixture
def own_site(own_course: Course, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(own_course.root)
    return Site()


def with_options(site: Site, **options: object) -> Site:
    site.options = GradingOptions(**options)
    return site


def ask_elsewhere(name: str, *before: str, into: Path, cwd: Path) -> Finding:
    """What a check finds in another process, which `before` starts or prepares."""
    code = (
        "import json, pathlib\n"
        "from dataclasses import asdict\n"
        "from autograder.doctor import CHECKS, look\n"
        "from autograder.doctor.findings import Site\n"
        f"found = look({name!r}, CHECKS[{name!r}], Site(pathlib.Path({str(into)!r})))\n"
        "print(json.dumps(asdict(found)))\n"
    )
    said = subprocess.run(
        [*before, sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert said.returncode == 0, said.stderr
    return Finding(**json.loads(said.stdout.splitlines()[-1]))


# ---- the command


def test_nothing_stops_grading_here(autograder: Command, course: Course, tmp_path: Path) -> None:
    said = autograder("doctor", "--json", "--into", tmp_path / "results", cwd=course.root)
    assert said.returncode == 0, said.stdout
    entries = {entry["name"]: entry for entry in json.loads(said.stdout)}
    assert list(entries) == list(CHECKS)
    for entry in entries.values():
        assert list(entry) == ["name", "state", "found", "todo"]
        assert entry["state"] == OK or (entry["state"] == WARNING and entry["todo"])
        assert entry["found"]
    assert entries["namespaces"]["found"].startswith("warm after ")
    assert entries["limits"]["found"].startswith("limits on memory, files, disk, processes hold; ")
    assert not (tmp_path / "results").exists()


def test_what_is_missing_is_named_with_how_to_get_it(
    autograder: Command, course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of programs, only those beside Python are found; and the output knows ASCII alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    said = autograder("doctor", "--into", tmp_path, cwd=course.root)
    assert said.returncode == 1, said.stderr
    lines = " ".join(said.stdout.replace("|", " ").split())
    assert "bubblewrap problem bwrap is not on PATH" in lines
    assert "sudo apt-get install bubblewrap" in lines
    assert "limits warning not tried: there is no sandbox" in lines
    assert "git and make warning git and make not found" in lines
    assert "chromium warning no Chromium was found" in lines
    assert "locale problem output in ascii cannot say" in lines
    assert "alembic OK" in lines
    assert "without fontconfig" in lines
    assert "Grading would fail here: locale, bubblewrap; to be looked at: git and make," in lines


def test_a_check_that_raises_costs_itself_alone() -> None:
    def breaks(site: Site) -> Said:
        raise ZeroDivisionError("no reason\nat all")

    def ends(site: Site) -> Said:
        raise SystemExit(3)

    findings = examine(checks={"a": breaks, "b": ends, "c": lambda site: ok("fine")})
    assert findings == [
        Finding("a", PROBLEM, "ZeroDivisionError: no reason", UNEXPECTED),
        Finding("b", PROBLEM, "SystemExit: 3", UNEXPECTED),
        Finding("c", OK, "fine"),
    ]


def test_packages_that_are_missing_do_not_stop_it(python: Command, course: Course) -> None:
    code = """
        import sys
        for name in ("torch", "nbformat", "nbgrader", "traitlets", "matplotlib"):
            sys.modules[name] = None
        from autograder.cli import app
        app(["doctor", "--json"])
    """
    said = python("-c", textwrap.dedent(code), cwd=course.root)
    assert said.returncode == 1, said.stderr
    entries = json.loads(said.stdout)
    assert [entry["name"] for entry in entries] == list(CHECKS)
    reasons = {entry["name"]: entry for entry in entries if "ModuleNotFound" in entry["found"]}
    assert {"fonts", "namespaces", "course", "releases"} <= reasons.keys()
    assert "python" not in reasons
    assert all("make setup" in entry["todo"] for entry in reasons.values())


# ---- what is installed


def test_an_old_python_is_a_problem(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks.platform, "python_version", lambda: "3.10.14")
    finding = found_by("python", site)
    assert (finding.state, "3.10.14" in finding.found) == (PROBLEM, True)
    assert "3.11" in finding.todo


def test_packages_are_compared_with_the_pins(own_site: Site) -> None:
    pins = own_site.course.root / "requirements.txt"
    pins.write_text("# A heading\nnumpy==0.1  # why\nhypothesis==0.2\n")
    finding = found_by("packages", own_site)
    assert finding.state == WARNING
    assert "numpy is " in finding.found
    assert "known to work is 0.1; hypothesis is" in finding.found
    pins.write_text("no-such-package==1.0\n")
    finding = found_by("packages", own_site)
    assert (finding.state, finding.found) == (PROBLEM, "no-such-package is missing")
    assert "make setup" in finding.todo


def test_a_package_for_tests_alone_may_be_missing(
    own_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_site.course.root / "requirements.txt").write_text("torch==2.13.0\nnbval==0.11.0\n")

    def version(name: str) -> str:
        if name == "nbval":
            raise machine_checks.importlib.metadata.PackageNotFoundError(name)
        return "2.13.0+cpu"

    monkeypatch.setattr(machine_checks.importlib.metadata, "version", version)
    finding = found_by("packages", own_site)
    assert (finding.state, finding.found) == (WARNING, "nbval is missing")


def test_without_alembic_nothing_can_be_graded(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_checks, "programs", lambda: str(tmp_path))
    assert found_by("alembic", site).state == PROBLEM


# ---- what room there is


def test_memory_is_that_of_all_workers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with_options(site, workers=3, memory_limit=2.0)
    monkeypatch.setattr(machine_checks, "_of_container", lambda name: str(5 * GIB))
    finding = found_by("memory", site)
    assert finding.state == WARNING
    assert finding.found == "5.0 GiB, for 3 kernels of at most 2.0 GiB each"
    assert "workers = 2" in finding.todo
    assert found_by("memory", with_options(site, workers=2, memory_limit=2.0)).state == OK
    finding = found_by("memory", with_options(site, workers=1, memory_limit=8.0))
    assert (finding.state, "lower memory_limit" in finding.todo) == (WARNING, True)


def test_cores_are_those_that_may_be_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with_options(site, workers=2)
    monkeypatch.setattr(machine_checks.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(machine_checks, "_of_container", lambda name: "max 100000")
    assert found_by("cores", site).state == OK
    monkeypatch.setattr(machine_checks, "_of_container", lambda name: "150000 100000")
    finding = found_by("cores", site)
    assert finding.state == WARNING
    assert finding.found == "1.5 usable, 2 notebooks side by side"
    assert "workers = 1" in finding.todo


def test_limits_of_the_machine_that_are_lower_are_named(course: Course, tmp_path: Path) -> None:
    lower = ("bash", "-c", 'ulimit -n 200; ulimit -t 600; exec "$@"', "bash")
    finding = ask_elsewhere("ulimits", *lower, into=tmp_path, cwd=course.root)
    assert finding.state != OK  # with many cores, 200 are too few for the grading process too
    assert "seconds of CPU time 600 of 900 (ulimit -Ht)" in finding.found
    assert "open files 200 of 1024 (ulimit -Hn)" in finding.found


def test_open_files_are_those_of_all_workers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks.resource, "getrlimit", lambda kind: (500, 2000))
    options = {"memory_limit": 1e-9, "disk_limit": 1e-9, "cpu_limit": 1.0}
    assert found_by("ulimits", with_options(site, workers=49, **options)).state == OK
    finding = found_by("ulimits", with_options(site, workers=50, **options))
    assert finding.found == "2000 open files are allowed, 50 workers need 2040"
    assert (finding.state, "nofile to 2040" in finding.todo) == (PROBLEM, True)


@pytest.mark.parametrize(("free", "state"), [(50, PROBLEM), (500, WARNING), (5000, OK)])
def test_free_disk(site: Site, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    usage = SimpleNamespace(free=free * MIB)
    monkeypatch.setattr(machine_checks.shutil, "disk_usage", lambda place: usage)
    finding = found_by("disk", site)
    assert finding.state == state
    for place in (site.into, "/var/tmp", tempfile.gettempdir()):
        assert f"free in {place}" in finding.found
        assert (f"Free some space in {place}." in finding.todo) == (state != OK)


def test_little_shared_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=MIB)
    monkeypatch.setattr(machine_checks.shutil, "disk_usage", lambda place: usage)
    assert found_by("shared memory", site).state == WARNING


def test_results_need_a_folder(tmp_path: Path) -> None:
    assert found_by("results", Site(tmp_path / "new" / "folder")).state == OK
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").touch()
    finding = found_by("results", Site(tmp_path / "file"))
    assert (finding.state, "--into" in finding.todo) == (PROBLEM, True)


def test_a_long_path_for_sockets(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(machine_checks.tempfile, "tempdir", str(long))
    assert found_by("socket paths", site).state == OK
    monkeypatch.setattr(machine_checks.os, "access", lambda place, mode: False)
    finding = found_by("socket paths", site)
    assert (finding.state, str(long) in finding.found) == (PROBLEM, True)
    assert "TMPDIR" in finding.todo


def test_a_clock_that_is_behind(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks.time, "time", lambda: 1e9)
    finding = found_by("clock", site)
    assert (finding.state, "2001-09-09" in finding.found) == (WARNING, True)


def test_fonts_that_are_looked_for_in_each_run(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLCONFIGDIR", "/dev/null/nowhere")
    finding = ask_elsewhere("fonts", into=tmp_path, cwd=course.root)
    assert (finding.state, "MPLCONFIGDIR" in finding.todo) == (WARNING, True)


def test_a_missing_font(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import font_manager

    def find(name: str, **_: object) -> str:
        raise ValueError(name)

    monkeypatch.setattr(font_manager, "findfont", find)
    finding = found_by("fonts", site)
    assert (finding.state, "DejaVu Sans" in finding.found) == (WARNING, True)


# ---- the sandbox


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Whether there can be a sandbox is asked anew."""
    sandbox.why_unavailable.cache_clear()
    yield
    sandbox.why_unavailable.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_a_bubblewrap_that_may_not(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"]))
    settings = tmp_path / "sys" / "kernel"
    settings.mkdir(parents=True)
    monkeypatch.setattr(kernel_checks, "PROC_SYS", settings.parent)
    (settings / "unprivileged_userns_clone").write_text("1\n")
    finding = found_by("bubblewrap", site)
    assert finding.state == PROBLEM
    assert "setting up uid map: Permission denied" in finding.found
    assert "In a container" in finding.todo
    (settings / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    finding = found_by("bubblewrap", site)
    command = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    assert finding.todo == f"Run `{command}`."
    assert found_by("bubblewrap", with_options(site, sandbox=False)).state == WARNING
    assert found_by("namespaces", site).state == WARNING


@pytest.fixture
def fresh_nursery(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kernels, "_nursery", None)
    yield
    if kernels._nursery is not None:
        kernels._nursery.close()


@pytest.mark.usefixtures("fresh_nursery")
def test_kernels_that_cannot_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ["sh", "-c", "echo 'bwrap: no room' >&2; exit 1"]
    monkeypatch.setattr(sandbox, "command", lambda *_: failing)
    finding = found_by("namespaces", site)
    assert (finding.state, "bwrap: no room" in finding.found) == (PROBLEM, True)


@pytest.mark.usefixtures("fresh_nursery")
def test_a_course_that_kernels_can_see(monkeypatch: pytest.MonkeyPatch, course: Course) -> None:
    """As it would be somewhere below /usr."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        (Path(place) / "source").mkdir()
        shutil.copy(course.root / "nbgrader_config.py", place)
        monkeypatch.chdir(place)
        monkeypatch.setattr(sandbox, "SYSTEM", (*sandbox.SYSTEM, place))
        finding = found_by("namespaces", Site())
    assert finding.state == PROBLEM
    assert finding.found == f"a kernel sees {place}/source of the machine"


def test_limits_that_do_not_hold(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if none were set: each is far above what the kernel tries."""
    for name, limit in (("FILE", GIB), ("DISK", GIB), ("MEMORY", 2**40), ("PROCESSES", 5000)):
        monkeypatch.setattr(kernel_checks, name, limit)
    finding = found_by("limits", site)
    assert finding.state == PROBLEM
    assert finding.found == "no limit holds on memory, files, disk, processes"


# ---- the course


def configure(site: Site, text: str) -> None:
    with (site.course.root / "nbgrader_config.py").open("a") as file:
        file.write(text)


@pytest.mark.filterwarnings("ignore:Config option")
@pytest.mark.parametrize(
    ("line", "state", "said"),
    [
        ("1 +", PROBLEM, "SyntaxError"),
        ("import sys; sys.exit(3)", PROBLEM, "ends Python"),
        ("c.GradingOptions.workers = 'two'", PROBLEM, "workers"),
        ("c.GradingOptions.memory_limit = -1.0", PROBLEM, "memory_limit is -1"),
        ("c.GradingOptions.cpu_limit = 0", PROBLEM, "cpu_limit is 0"),
        ("c.GradingOptions.workers = 0", OK, "loads"),
        ("c.GradingOptions.memory = 4.0", WARNING, "no such setting: memory"),
        ("c.GradingOptions.sandbox = False", WARNING, "with your rights"),
    ],
)
def test_settings(own_site: Site, line: str, state: str, said: str) -> None:
    configure(own_site, line)
    finding = found_by("course", own_site)
    assert (finding.state, bool(finding.todo)) == (state, state != OK)
    assert said in finding.found


def test_what_needs_the_course_says_so_where_it_cannot_be_read(own_site: Site) -> None:
    configure(own_site, "1 +")
    for name in ("due dates", "releases"):
        assert found_by(name, own_site).todo == "Mend the course first."
    for name in ("memory", "cores", "results", "disk", "gradebook"):
        assert found_by(name, own_site).state != PROBLEM


def test_outside_of_a_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finding = found_by("course", Site())
    assert (finding.state, "This is no course" in finding.found) == (PROBLEM, True)
    for name in ("packages", "due dates", "releases", "gradebook"):
        assert found_by(name, Site()).state != PROBLEM


def test_due_dates(own_site: Site) -> None:
    configure(own_site, 'c.GradingOptions.due_dates = {"02_b": "2026-10-12"}\n')
    finding = found_by("due dates", own_site)
    assert (finding.state, finding.found) == (WARNING, "no such topic: 02_b")
    configure(own_site, f'c.GradingOptions.due_dates = {{"{TOPIC}": "next week"}}\n')
    finding = found_by("due dates", own_site)
    assert (finding.state, finding.found) == (PROBLEM, f"no due date: 'next week' of {TOPIC}")


def test_releases(own_site: Site) -> None:
    assert found_by("releases", own_site).state == OK
    release = own_site.course.root / "release"
    (release / "02_multi_head_attention" / "autograder_student.py").unlink()
    shutil.rmtree(release / "03_positional_encoding")
    cases = release / "04_transformer_block" / "public_cases.safetensors"
    cases.write_bytes(cases.read_bytes()[:-10])
    notebook = release / "05_causal_mask" / "05_causal_mask.ipynb"
    notebook.write_text(notebook.read_text() + "\n")
    (release / "06_training" / "autograder_student.py").write_text("pass\n")
    finding = found_by("releases", own_site)
    assert finding.state == PROBLEM
    assert "make release" in finding.todo
    for why in (
        "release/02_multi_head_attention lacks autograder_student.py",
        "release/03_positional_encoding lacks 03_positional_encoding.ipynb, ",
        "release/04_transformer_block has a damaged public_cases.safetensors",
        "release/05_causal_mask does not fit source/05_causal_mask",
        "release/06_training has another autograder_student.py",
    ):
        assert why in finding.found
    assert TOPIC not in finding.found


# ---- the gradebook


@pytest.fixture(scope="module")
def made_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    book = tmp_path_factory.mktemp("made") / "gradebook.db"
    with Gradebook(f"sqlite:///{book}") as gradebook:
        gradebook.add_assignment(TOPIC)
    names = (f"student{number:030}" for number in range(300))
    change(book, *(f"INSERT INTO student (id) VALUES ('{name}')" for name in names))
    return book


@pytest.fixture
def book(site: Site, made_book: Path) -> Path:
    """A gradebook with some rows, where this site has it."""
    site.into.mkdir()
    shutil.copy(made_book, site.gradebook)
    return site.gradebook


def change(book: Path, *statements: str) -> None:
    database = sqlite3.connect(book)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def test_a_sound_gradebook_is_left_as_it_is(site: Site, book: Path) -> None:
    change(book, "DELETE FROM course")  # which nbgrader would put back at once
    before = book.read_bytes()
    finding = found_by("gradebook", site)
    assert (finding.state, finding.todo) == (OK, "")
    assert finding.found.endswith("gradebook.db: whole, writable, 1 assignments, 300 students")
    assert book.read_bytes() == before
    assert os.listdir(site.into) == [book.name]


def test_none_and_an_empty_one_are_fine(site: Site) -> None:
    assert found_by("gradebook", site).state == OK
    site.into.mkdir()
    site.gradebook.touch()
    assert found_by("gradebook", site).state == OK
    assert site.gradebook.stat().st_size == 0


def test_a_file_that_is_no_gradebook(site: Site) -> None:
    site.into.mkdir()
    site.gradebook.write_text("student,points\n" * 1000)
    finding = found_by("gradebook", site)
    assert (finding.state, "is not a gradebook" in finding.found) == (PROBLEM, True)
    assert "verdicts/" in finding.todo
    site.gradebook.unlink()
    change(site.gradebook, "CREATE TABLE points (student TEXT)")
    finding = found_by("gradebook", site)
    assert (finding.state, "no gradebook of nbgrader's" in finding.found) == (PROBLEM, True)
    site.gradebook.unlink()
    site.gradebook.mkdir()
    assert found_by("gradebook", site).state == PROBLEM


def test_a_damaged_gradebook(site: Site, book: Path) -> None:
    data = bytearray(book.read_bytes())
    place = data.index(b"student" + b"0" * 27)  # a page of the table of students
    data[place - 2000 : place + 500] = bytes(2500)
    book.write_bytes(data)
    finding = found_by("gradebook", site)
    assert (finding.state, "damaged" in finding.found) == (PROBLEM, True)
    assert "restore a copy" in finding.todo


def test_a_gradebook_of_an_older_nbgrader(site: Site, book: Path) -> None:
    change(book, "UPDATE alembic_version SET version_num = '167914646830'")
    finding = found_by("gradebook", site)
    assert (finding.state, "167914646830" in finding.found) == (PROBLEM, True)
    assert f"nbgrader db upgrade --db sqlite:///{book}" in finding.todo


def test_a_locked_gradebook(site: Site, book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        f"import sqlite3, sys; book = sqlite3.connect({str(book)!r}, isolation_level=None)\n"
        "book.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        began = time.monotonic()
        finding = found_by("gradebook", site)
        assert time.monotonic() - began < 30
        holder.stdin.close()
    assert (finding.state, "is locked by" in finding.found) == (PROBLEM, True)
    assert f"process {holder.pid}" in finding.found + finding.todo
    assert found_by("gradebook", site).state == OK


def test_what_is_read_only(book: Path, site: Site) -> None:
    """Behind a mount that nobody may write to, root neither."""
    place = str(site.into)
    frozen = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", place, place)
    finding = ask_elsewhere("gradebook", *frozen, into=site.into, cwd=site.root)
    assert (finding.state, "cannot be written" in finding.found) == (PROBLEM, True)
    assert "writable" in finding.todo
    finding = ask_elsewhere("results", *frozen, into=site.into, cwd=site.root)
    assert (finding.state, "--into" in finding.todo) == (PROBLEM, True)
