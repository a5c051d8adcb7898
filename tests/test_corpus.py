"""Hostile and broken submissions, graded as one class by the real command: no attack earns a point,
no fault costs anybody else's work. What the entries are made of: tests/corpus/README.md."""

import csv
import ctypes
import fcntl
import hashlib
import html
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from functools import cache, cached_property
from html.parser import HTMLParser
from pathlib import Path
from runpy import run_path
from typing import Any

import nbformat
import pytest
from conftest import ROOT, TOPIC, make_course, run_command
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook, MissingEntry

import autograder
from autograder.build.release import read_notebook
from autograder.course import Course, check_id, grade_id_of
from autograder.exercises import TOPICS
from autograder.grading.records import Record, load_record
from autograder.sample import fill

CORPUS = ROOT / "tests" / "corpus"
HONEST = ("alder", "zelkova")  # graded first and last
NOBODY = 65534
CANARY = "canary"  # how each text begins that must not leave the place where it lies
LIMITS = """
c.GradingOptions.workers = 2
c.GradingOptions.cell_timeout = 8.0
c.GradingOptions.exercise_timeout = 3.0
c.GradingOptions.notebook_timeout = 120.0
c.GradingOptions.memory_limit = 2.0
c.GradingOptions.disk_limit = 0.05
c.GradingOptions.process_limit = 64
c.GradingOptions.output_limit = 20_000
"""


# ---- an entry, and the submission that is made of it


@dataclass(frozen=True)
class Entry:
    """A folder of the corpus: what is submitted, and how it must end."""

    name: str
    about: str = ""
    topic: str = TOPIC
    student: str = ""
    status: str = "graded"
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    page: list[str] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)
    unprivileged: bool = False
    whole: bool = False
    edit: list[dict[str, Any]] = field(default_factory=list)
    notebook: dict[str, Any] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return CORPUS / self.name

    @property
    def of(self) -> str:
        return self.student or self.name

    @property
    def row(self) -> tuple[str, str]:
        """Student and topic as the table has them, without spaces."""
        student, _, below = self.of.partition("/")
        return (packed(student if student.isprintable() else repr(student)), below or self.topic)

    @property
    def expected(self) -> dict[str, float]:
        """Points by exercise: all of them, but where the entry says otherwise."""
        most = {item.id: float(item.points) for item in TOPICS[self.topic].exercises}
        return most | self.points

    def text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""


def load_entries() -> list[Entry]:
    return [
        Entry(path.parent.name, **tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted(CORPUS.glob("*/case.toml"))
    ]


ENTRIES = load_entries()
GRADED = [entry for entry in ENTRIES if entry.status == "graded"]


def submit(course: Course, entry: Entry) -> None:
    """Put the entry's submission where students' lie, with a text of its own beside it."""
    folder = course.submitted / entry.of / entry.topic
    folder.mkdir(parents=True)
    for path in course.release_notebook(entry.topic).parent.iterdir():
        if path.suffix != ".ipynb":
            shutil.copy(path, folder)
    (folder / "own.txt").write_text(canary_of(entry.name))
    if (entry.folder / "files").is_dir():
        shutil.copytree(entry.folder / "files", folder, dirs_exist_ok=True)
    for name, target in entry.links.items():
        (folder / name).symlink_to(placed(target, course))
    for name in ("timestamp.txt", "notebook.ipynb"):
        if (entry.folder / name).is_file():
            to = name if name.endswith(".txt") else f"{entry.topic}.ipynb"
            shutil.copy(entry.folder / name, folder / to)
    path = folder / entry.file.get("name", f"{entry.topic}.ipynb")
    if not path.exists():
        notebook = made_notebook(course, entry)
        if (entry.folder / "make.py").is_file():
            run_path(str(entry.folder / "make.py"))["make"](folder, notebook)
        if not path.exists():
            path.write_bytes(as_bytes(notebook, entry.file))
    path.chmod(int(entry.file.get("mode", "644"), 8))


def made_notebook(course: Course, entry: Entry) -> NotebookNode:
    """The release, filled in with right answers but for the entry's own, and edited as it says."""
    release = read_notebook(course.release_notebook(entry.topic))
    right = (CORPUS / "right" / f"{entry.topic}.py").read_text(encoding="utf-8")
    notebook = fill(fill(release, right), placed(entry.text("answers.py"), course))
    if not entry.whole:  # without what only draws: it takes most of the time
        notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "code" or kept(cell)]
    cells = notebook.cells
    cells[:0] = cells_of(placed(entry.text("before.py"), course))
    cells += cells_of(placed(entry.text("after.py"), course))
    for path in sorted(entry.folder.glob("after_*.py")):
        place = index_of(notebook, path.stem.removeprefix("after_"))
        cells[place + 1 : place + 1] = cells_of(placed(path.read_text(encoding="utf-8"), course))
    for edit in entry.edit:
        edit_cells(notebook, **edit)
    return edited(notebook, **entry.notebook)


def kept(cell: NotebookNode) -> bool:
    return bool(grade_id_of(cell)) or cell.id == "imports-and-helpers"


def cells_of(text: str) -> list[NotebookNode]:
    return [new_code_cell(part.strip()) for part in text.split("# %%") if part.strip()]


def placed(text: str, course: Course) -> str:
    """With the real folders, as an attacker would know them who has seen the machine."""
    places = {"COURSE": course.root, "SUBMITTED": course.submitted, "RESULTS": course.into}
    for name, place in places.items():
        text = text.replace(f"{name}_FOLDER", str(place))
    return text


def index_of(notebook: NotebookNode, name: str) -> int:
    return next(i for i, cell in enumerate(notebook.cells) if grade_id_of(cell) == name)


def edit_cells(
    notebook: NotebookNode,
    cell: str,
    set: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    nbgrader: dict[str, Any] | None = None,
    without: list[str] | None = None,
    delete: bool = False,
    copy: bool = False,
    move: int | None = None,
) -> None:
    """One change to the cell of a grade_id ("*": to each cell of the assignment)."""
    named = [
        item for item in notebook.cells if grade_id_of(item) and cell in ("*", grade_id_of(item))
    ]
    assert named, cell
    for one in named:
        place = notebook.cells.index(one)
        if copy:
            notebook.cells.insert(place + 1, nbformat.from_dict(json.loads(json.dumps(one))))
        if delete or move is not None:
            notebook.cells.pop(place)
        if move is not None:
            notebook.cells.insert(move, one)
        if nbgrader is not None:
            one.metadata["nbgrader"].update(nbgrader)
        one.metadata.update(metadata or {})
        one.update(set or {})
        if one.cell_type != "code":
            without = [*(without or []), "outputs", "execution_count"]
        for key in without or []:
            one.pop(key, None)


def edited(
    notebook: NotebookNode,
    version: int = 4,
    set: dict[str, Any] | None = None,
    without: list[str] | None = None,
) -> NotebookNode:
    converted: NotebookNode = notebook if version == 4 else nbformat.convert(notebook, version)
    converted.update(set or {})
    for key in without or []:
        converted.pop(key, None)
    return converted


def as_bytes(notebook: NotebookNode, file: dict[str, Any]) -> bytes:
    text = json.dumps(notebook, indent=1, ensure_ascii=file.get("ascii", False))
    text = text.replace("\n", file.get("newline", "\n"))
    data = text.encode(file.get("encoding", "utf-8"), file.get("errors", "strict"))
    return data + b" " * (int(file.get("size", 0)) - len(data))


def canary_of(name: str) -> str:
    return f"{CANARY}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


# ---- the class, graded once as it is and once by a user without rights


@dataclass(frozen=True)
class GradedClass:
    """What the command said and left."""

    entries: list[Entry]
    course: Course
    said: subprocess.CompletedProcess
    left_running: list[str]
    changed: list[str]

    @cached_property
    def rows(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Points and what went wrong by student and topic, without any spaces: lines are
        wrapped anywhere."""
        rows: list[list[str]] = []
        for line in self.said.stdout.splitlines():
            if line.startswith("│"):
                columns = [packed(part) for part in line[1:-1].split("│")]
                if columns[1]:
                    rows.append(columns)
                else:
                    rows[-1] = [
                        before + more for before, more in zip(rows[-1], columns, strict=True)
                    ]
        return {(student, topic): (points, reason) for student, topic, points, reason in rows}

    def record(self, entry: Entry) -> Record | None:
        return load_record(self.course.records, entry.topic, entry.of)

    def page(self, entry: Entry) -> Path:
        return self.course.into / "feedback" / entry.of / entry.topic / f"{entry.topic}.html"

    def points_in_gradebook(self, entry: Entry) -> dict[str, float]:
        with Gradebook(f"sqlite:///{self.course.gradebook}") as gradebook:
            (notebook,) = gradebook.find_submission(entry.topic, entry.of).notebooks
            return {item.name: item.score for item in notebook.grades}


def packed(text: str) -> str:
    return "".join(text.split())


def grade_corpus(place: Path, entries: list[Entry], as_nobody: bool) -> dict[str, Any]:
    """Grade the entries and two honest students; what is needed to look at the results."""
    course = course_at(place)
    make_course(course.root)
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(LIMITS)
    home = place / "home"
    for kept_at in (home, course.root, course.root / "source", course.into):
        kept_at.mkdir(exist_ok=True)
        (kept_at / "secret.txt").write_text(canary_of(str(kept_at.relative_to(place))))
    for entry in [*(Entry(name, whole=True) for name in HONEST), *entries]:
        submit(course, entry)
    before = hashes_below(place)
    program = Path(sys.executable).with_name("autograder")
    folders = ("--submitted", course.submitted, "--into", course.into)
    command = [program, "grade", *sorted({entry.topic for entry in entries}), *folders]
    if as_nobody:
        command = by_nobody(command, place)
    around = {"HOME": str(home), "TMPDIR": str(place), "GRADERS_SECRET": canary_of("environment")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in around.items():
            patch.setenv(name, value)
        adopt_orphans()
        others = set(children())
        said = run_command(*command, cwd=course.root, seconds=900)
        time.sleep(1)
        left = [name_of_process(pid) for pid in children() if pid not in others]
    after = hashes_below(place)
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    results = str(course.into.relative_to(place))
    return {
        "said": [list(map(str, said.args)), said.returncode, said.stdout, said.stderr],
        "left_running": left,
        "changed": [path for path in changed if not path.startswith(results)],
    }


def course_at(place: Path) -> Course:
    return Course.at(place / "course", place / "submitted", place / "results")


def hashes_below(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }


def adopt_orphans() -> None:
    """From now on a process whose parent has ended is a child of this one, and can be seen."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split() if is_running(int(pid))]


def is_running(pid: int) -> bool:
    """Whether it is one that still does something; what has ended waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def name_of_process(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def by_nobody(command: list[Any], place: Path) -> list[Any]:
    """The command, started by a user without any rights, who owns `place`.

    Folders on the way to the interpreter, to this package and to `place` that are closed to others
    are covered, in a view of the disk of its own, and what is needed is put in its place again.
    """
    needed = {Path(sys.prefix), Path(sys.base_prefix), Path(autograder.__file__).parents[1], place}
    script = ["set -e", f"chown -R {NOBODY}:{NOBODY} {quoted(place)}"]
    under: dict[Path, list[Path]] = {}
    for path in sorted(needed):
        closed = [folder for folder in reversed(path.parents) if not folder.stat().st_mode & 1]
        if closed:
            under.setdefault(closed[0], []).append(path)
    for number, (folder, paths) in enumerate(under.items()):
        for index, path in enumerate(paths):
            aside = f"/tmp/.aside-{os.getpid()}-{number}-{index}"
            script += [f"mkdir {aside}", f"mount --bind {quoted(path)} {aside}"]
        script.append(f"mount -t tmpfs -o mode=755 covered {quoted(folder)}")
        for index, path in enumerate(paths):
            aside = f"/tmp/.aside-{os.getpid()}-{number}-{index}"
            script += [f"mkdir -p {quoted(path)}", f"mount --bind {aside} {quoted(path)}"]
            script += [f"umount {aside}", f"rmdir {aside}"]
    script += [f'exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "$@"']
    return ["unshare", "--mount", "sh", "-c", "\n".join(script), "sh", *command]


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


@cache
def why_not_by_nobody() -> str:
    """Why the corpus cannot be graded by a user without rights; empty where it can."""
    if os.getuid() != 0:
        return "the tests are run by a user without rights already"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "unshare and setpriv (util-linux) are not there"
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        tried = run_command(
            *by_nobody([sys.executable, "-c", "import autograder.cli"], Path(place)),
            cwd=Path(place),
        )
    said = tried.stderr.strip().splitlines()
    return f"no user without rights can start Python here ({said[-1]})" if tried.returncode else ""


RUNS = ("as-it-is", "by-nobody")


@pytest.fixture(scope="module", params=RUNS)
def graded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    """Graded once, whichever of the processes of pytest -n comes first; the others wait."""
    as_nobody = request.param == "by-nobody"
    if as_nobody and (reason := why_not_by_nobody()):
        pytest.skip(reason)
    entries = [entry for entry in ENTRIES if is_graded(entry, request.param)]
    place = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        place = place.parent
    folder = place / f"corpus-{request.param}"
    told = place / f"corpus-{request.param}.json"
    with told.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            folder.mkdir()
            told.write_text(json.dumps(grade_corpus(folder, entries, as_nobody)))
    ending = json.loads(told.read_text())
    said = subprocess.CompletedProcess(*ending.pop("said"))
    return GradedClass(entries, course_at(folder), said, **ending)


def is_graded(entry: Entry, run: str) -> bool:
    return entry.unprivileged or run != "by-nobody"


def of_each_run(entries: list[Entry]) -> pytest.MarkDecorator:
    """A test of each entry in each run that it is graded in."""
    return pytest.mark.parametrize(
        ("graded", "entry"),
        [
            pytest.param(run, entry, id=f"{run}-{entry.name}")
            for run in RUNS
            for entry in entries
            if is_graded(entry, run)
        ],
        indirect=["graded"],
    )


by_name = of_each_run(ENTRIES)
if_graded = of_each_run(GRADED)


# ---- the corpus itself


def test_the_corpus_is_large_enough_and_says_what_it_is() -> None:
    assert len(ENTRIES) >= 60
    assert sum(entry.unprivileged for entry in ENTRIES) >= 25
    assert len({entry.of for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert entry.about.endswith("."), entry.name
        assert entry.status in ("graded", "not graded"), entry.name
        assert bool(entry.reason) == (entry.status == "not graded"), entry.name
        assert set(entry.points) <= set(entry.expected), entry.name


# ---- how it ended


def test_the_run_ends_well_and_names_everybody(graded: GradedClass) -> None:
    assert (graded.said.returncode, graded.said.stderr) == (0, "")
    rows = {entry.row for entry in graded.entries} | {(name, TOPIC) for name in HONEST}
    assert set(graded.rows) == rows


def test_nothing_is_left_running_and_nothing_else_was_changed(graded: GradedClass) -> None:
    assert graded.left_running == []
    assert graded.changed == []


@pytest.mark.parametrize("student", HONEST)
def test_an_honest_student_keeps_everything(student: str, graded: GradedClass) -> None:
    entry = Entry(student)
    record = graded.record(entry)
    assert record is not None
    assert record.points == entry.expected
    assert (record.repairs, record.troubles, record.flags) == ([], [], [])
    points = graded.points_in_gradebook(entry)
    assert {check_id(name): got for name, got in entry.expected.items()}.items() <= points.items()


@by_name
def test_points_are_for_what_was_solved(entry: Entry, graded: GradedClass) -> None:
    record = graded.record(entry)
    if entry.status == "not graded":
        assert record is None
        assert not graded.page(entry).exists()
        with pytest.raises(MissingEntry):
            graded.points_in_gradebook(entry)
        return
    assert record is not None
    assert record.points == entry.expected
    wanted = {check_id(name): points for name, points in entry.expected.items()}
    entered = graded.points_in_gradebook(entry)
    assert {name: entered[name] for name in wanted} == wanted


@by_name
def test_the_table_says_how_it_ended(entry: Entry, graded: GradedClass) -> None:
    points, said = graded.rows[entry.row]
    if entry.status == "not graded":
        assert points == "—"
        assert said.startswith("notgraded:")
        assert packed(entry.reason) in said
        return
    assert points.startswith(f"{sum(entry.expected.values()):g}/")
    for note in entry.notes:
        assert packed(note) in said


@if_graded
def test_flags_name_what_was_tried(entry: Entry, graded: GradedClass) -> None:
    record = graded.record(entry)
    assert record is not None
    assert {flag.kind for flag in record.flags} == set(entry.flags), record.flags


class Page(HTMLParser):
    """The tags of a page, what could act in it, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.acting: list[str] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        elif given.get("http-equiv") or tag in (
            *("script", "iframe", "object", "embed", "link", "base", "form", "input", "button"),
            *("svg", "video", "audio", "source", "template"),
        ):
            self.acting.append(tag)
        for name, value in given.items():
            allowed = value.startswith("#" if name == "href" else "data:image/png;base64,")
            if name.startswith("on") or (
                name in ("href", "src", "srcset", "style") and not allowed
            ):
                self.acting.append(f"{tag} {name}={value[:40]}")

    def handle_comment(self, data: str) -> None:
        self.acting.append(f"comment {data[:40]}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@if_graded
def test_feedback_is_safe_to_open_and_holds_nothing_of_others(
    entry: Entry, graded: GradedClass
) -> None:
    text = graded.page(entry).read_text(encoding="utf-8")
    page = Page(text)
    assert page.acting == []
    assert "default-src 'none'" in page.policy
    assert "script-src" not in page.policy
    assert CANARY not in text.replace(canary_of(entry.name), "")
    record = graded.record(entry)
    assert record is not None
    assert str(record.seed) not in text
    shown = "".join(page.words)
    for verdict in record.verdicts:
        assert f" {verdict.exercise}" in shown
    for words in entry.page:
        assert words in shown


@if_graded
def test_feedback_holds_no_reference(entry: Entry, graded: GradedClass) -> None:
    shown = html.unescape(graded.page(entry).read_text(encoding="utf-8"))
    record = graded.record(entry)
    assert record is not None
    own = "\n".join(cell.source for cell in record.executed.cells)
    reference = (ROOT / "solutions" / f"{entry.topic[3:]}.py").read_text(encoding="utf-8")
    secrets = [line.strip() for line in reference.splitlines() if line.startswith("    ")]
    assert not [line for line in secrets if len(line) > 12 and line in shown and line not in own]


def test_grades_can_be_opened_in_a_spreadsheet(graded: GradedClass) -> None:
    with (graded.course.into / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    formulas = [text for row in rows for text in row.values() if text.startswith(tuple("=+-@\t\r"))]
    assert formulas == []
    points = {
        (row["student_id"].removeprefix("'"), row["assignment"]): float(row["raw_score"])
        for row in rows
    }
    for entry in graded.entries:
        if entry.status == "graded":
            assert points[entry.of, entry.topic] == sum(entry.expected.values())
