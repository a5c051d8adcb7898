"""Checks of the course: its settings, its releases, and the gradebook."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from autograder.doctor.findings import Said, Site, ok, problem, together, warning

LOCK_PATIENCE = 2.0  # seconds: what a run holds only to write one submission is let go
RESTORE = (
    "Move it away and restore a copy; without one `autograder grade` makes it anew from verdicts/, "
    "but for the points given by hand."
)
MAY_BE_0 = ("workers", "exercise_timeout")  # where it has a meaning of its own
CONFIG = "nbgrader_config.py"


def check_config(site: Site) -> Said:
    from autograder.course import GradingOptions, Trouble

    try:
        root = site.course.root
    except Trouble as trouble:
        return problem(str(trouble), "Run this in the folder that holds the course.")
    try:
        options, given = site.course.options(), site.course.config().get("GradingOptions", {})
    except Trouble as trouble:
        return problem(str(trouble), f"Correct it in {root / CONFIG}.")
    except SystemExit:
        return problem(f"{CONFIG} ends Python", f"Take the call of exit out of {root / CONFIG}.")
    names = sorted(GradingOptions.class_trait_names(config=True))
    parts = [ok(f"{CONFIG} in {root} loads")]
    if unknown := [name for name in given if name not in names]:
        todo = f"Correct the name; there are: {', '.join(names)}."
        parts.append(warning(f"no such setting: {', '.join(unknown)}", todo))
    for name in names:
        value = getattr(options, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (value < 0 or (value == 0 and name not in MAY_BE_0)):
            todo = f"Set c.GradingOptions.{name} to a positive number."
            parts.append(problem(f"{name} is {value:g}", todo))
    if not options.sandbox:
        todo = "Set c.GradingOptions.sandbox = True, unless every submission is trusted."
        parts.append(warning("the sandbox is off: students' code runs with your rights", todo))
    return together(parts)


def _unread(site: Site) -> Said | None:
    from autograder.course import Trouble

    try:
        site.course.options()
    except (Trouble, SystemExit):
        return warning("not looked at: the course cannot be read", "Mend the course first.")
    return None


def check_due_dates(site: Site) -> Said:
    from autograder.course import Trouble
    from autograder.exercises import TOPICS

    if unread := _unread(site):
        return unread
    given, odd = site.course.options().due_dates, []
    for topic, text in given.items():
        try:
            site.course.due_date(topic)
        except Trouble:
            odd.append(f"{text!r} of {topic}")
    if odd:
        todo = "Write it as '2026-10-12 23:59:00 UTC' or '2026-10-12 23:59:00 +02:00'."
        return problem(f"no due date: {', '.join(odd)}", todo)
    if unknown := [topic for topic in given if topic not in TOPICS]:
        return warning(f"no such topic: {', '.join(unknown)}", f"Correct its name in {CONFIG}.")
    return ok(f"{sum(map(bool, given.values()))} of {len(TOPICS)} topics have one")


def check_releases(site: Site) -> Said:
    """As grading does before it begins: the released notebook is the one that the source makes."""
    from autograder.course import Trouble
    from autograder.exercises import TOPICS

    if unread := _unread(site):
        return unread
    odd = []
    for topic in TOPICS:
        try:
            if why := _why_unfit(site, topic):
                odd.append(f"release/{topic} {why}")
        except Trouble as trouble:
            odd.append(str(trouble).rstrip("."))
    if odd:
        return problem("; ".join(odd), "Run `make release`, where the source is as it should be.")
    return ok(f"{len(TOPICS)} releases fit their sources")


def _why_unfit(site: Site, topic: str) -> str:
    from autograder.build.bundle import BUNDLE_FILE, bundle
    from autograder.build.release import generate
    from autograder.student.check import CASES_FILE

    release = site.course.release_notebook(topic)
    cases, code = release.with_name(CASES_FILE), release.with_name(BUNDLE_FILE)
    if missing := [file.name for file in (release, cases, code) if not file.is_file()]:
        return f"lacks {', '.join(missing)}"
    if code.read_text(encoding="utf-8") != bundle():
        return f"has another {BUNDLE_FILE} than this autograder"
    if not _are_cases_of(topic, cases.read_bytes()):
        return f"has a damaged {CASES_FILE}"
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        generate(site.course, topic, Path(scratch), database=False)
        made = (Path(scratch) / topic / release.name).read_bytes()
    return "" if release.read_bytes() == made else f"does not fit source/{topic}"


def _are_cases_of(topic: str, data: bytes) -> bool:
    from autograder.student.cases import CaseSet
    from autograder.student.tensors import MalformedData

    try:
        return CaseSet.from_bytes(data).topic == topic
    except MalformedData:
        return False


def check_gradebook(site: Site) -> Said:
    """That it can be read and written, without writing to it."""
    book = site.gradebook
    if not book.exists():
        return ok(f"there is none yet in {book.parent}: grading makes it")
    try:
        with book.open("r+b") as file:  # SQLite by itself would be content with reading
            if not file.read(1):
                return ok("it is empty: grading fills it")
    except OSError as error:
        todo = f"Make it writable (`chmod u+w {book}`), or name another folder with --into."
        return problem(f"{book} cannot be written ({error.strerror})", todo)
    address = f"file:{quote(str(book))}?mode=rw"
    try:
        with closing(
            sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE, isolation_level=None)
        ) as database:
            return _look_into(database, book)
    except sqlite3.Error as error:
        return _explained(error, book)


def _explained(error: sqlite3.Error, book: Path) -> Said:
    text = str(error)
    if "locked" in text:
        holder = _holder_of(book)
        todo = f"End {holder or 'the run or the formgrader that holds it'}, or wait for its end."
        return problem(f"{book} is locked by {holder or 'another program'}", todo)
    return problem(f"{book} is not a gradebook, or damaged ({text})", RESTORE)


def _holder_of(book: Path) -> str:
    """The process that has a lock on it, where the system says so."""
    locks, number = Path("/proc/locks"), str(book.stat().st_ino)
    for line in locks.read_text().splitlines() if locks.is_file() else ():
        fields = line.split()
        name = Path("/proc", fields[4], "comm")
        if fields[5].rpartition(":")[2] == number and name.is_file():
            return f"process {fields[4]} ({name.read_text().strip()})"
    return ""


def _look_into(database: sqlite3.Connection, book: Path) -> Said:
    database.execute("BEGIN IMMEDIATE")  # fails where it could not be written now
    database.execute("ROLLBACK")
    said = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
    if said != ["ok"]:
        return problem(f"{book} is damaged ({said[0].splitlines()[-1]})", RESTORE)
    newest, revision = _newest_revision(), _revision_of(database)
    if revision is None:
        return problem(f"{book} is a database, but no gradebook of nbgrader's", RESTORE)
    if revision != newest:
        todo = f"Run `nbgrader db upgrade --db sqlite:///{book}`, which keeps a copy beside it."
        return problem(f"its tables are of revision {revision}, nbgrader's of {newest}", todo)
    return ok(f"{book}: whole, writable, {_contents(database)}")


def _newest_revision() -> str | None:
    from alembic.script import ScriptDirectory
    from nbgrader.dbutil import ALEMBIC_DIR

    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


def _revision_of(database: sqlite3.Connection) -> str | None:
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
    if "alembic_version" not in tables:
        return None
    row = database.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _contents(database: sqlite3.Connection) -> str:
    """As nbgrader sees it, in a copy: it adds what it misses as soon as it opens one."""
    from nbgrader.api import Gradebook

    with tempfile.TemporaryDirectory(prefix="gradebook-") as scratch:
        copy = Path(scratch) / "gradebook.db"
        with closing(sqlite3.connect(copy)) as target:
            database.backup(target)
        with Gradebook(f"sqlite:///{copy}") as gradebook:
            counts = len(gradebook.assignments), len(gradebook.students)
    return f"{counts[0]} assignments, {counts[1]} students"
