"""Finding submissions, reading them, and repairing what a student may not change."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.validator import normalize

from autograder.course import Course, grade_id_of, is_locked, printable
from autograder.runner.pictures import handed_in
from autograder.student.cases import sound_text

TIMESTAMP_FILE = "timestamp.txt"
LARGEST_FILE = 20 * 2**20  # bytes
LARGEST_TOTAL, MOST_FILES = 64 * 2**20, 200  # of what lies beside a notebook
MOST_NAMED = 5  # files that were left out
IGNORED_FOLDERS = (".ipynb_checkpoints", "__pycache__")
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KEPT_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
}


class Ungradable(Exception):
    """A submission that cannot be graded; its text is the reason, for the table."""

    def __init__(self, reason: str) -> None:
        super().__init__(printable(sound_text(reason)))


@dataclass(frozen=True)
class Submission:
    """A student's folder for a topic."""

    student: str
    topic: str
    folder: Path

    @property
    def notebook(self) -> Path:
        return self.folder / f"{self.topic}.ipynb"


def find_submissions(course: Course, topic: str) -> list[Submission]:
    """All folders `submitted`/STUDENT/TOPIC, by student."""
    if not course.submitted.is_dir():
        return []
    folders = sorted(place / topic for place in course.submitted.iterdir())
    return [Submission(folder.parent.name, topic, folder) for folder in folders if _exists(folder)]


def _exists(folder: Path) -> bool:
    """Whether it is there; one that may not be looked into is, and will be named."""
    try:
        return folder.is_dir()
    except PermissionError:
        return True
    except OSError:
        return False


def stray_entries(
    course: Course, topics: Iterable[str], graded: Sequence[str]
) -> list[tuple[str, str, str]]:
    """What lies in `submitted`/STUDENT and belongs to no topic: student, name, and the reason.

    What was meant for one of the `graded` topics cannot be told from what was meant for others:
    all is named, whichever are graded.
    """
    known, found = list(topics), []
    for student in sorted(place for place in course.submitted.iterdir() if _is_folder(place)):
        name = sound_text(student.name)
        for entry in sorted(student.iterdir()):
            if entry.suffix == ".ipynb":
                topic = (get_close_matches(entry.stem, known, 1) or graded)[0]
                right = f"{name}/{topic}/{topic}.ipynb"
                found.append(
                    (name, sound_text(entry.name), f"it should lie in a folder, as {right}")
                )
            elif entry.name not in known and _is_folder(entry):
                near = get_close_matches(entry.name, known, 1)
                meant = f" (meant: {near[0]}?)" if near else ""
                found.append(
                    (name, sound_text(entry.name), f"there is no topic of that name{meant}")
                )
            elif entry.name in known and not _is_folder(entry):
                found.append((name, entry.name, "it is a file, where a folder should be"))
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False


def is_usable_name(student: str) -> bool:
    """Whether nbgrader, the gradebook and the disk can take it."""
    try:
        short = len(student.encode()) <= 200
    except UnicodeEncodeError:
        return False
    return short and student.isprintable() and not set(student) & set("*?[]")


def read_submission(submission: Submission) -> NotebookNode:
    """The notebook as submitted, upgraded to the current format; Ungradable where it is none."""
    path = submission.notebook
    if not is_usable_name(submission.student):
        raise Ungradable(
            "the name of the student's folder cannot be used: it is longer than 200 bytes, no "
            "Unicode, or holds a line break or one of * ? [ ]"
        )
    if submission.folder.is_symlink() or submission.folder.parent.is_symlink():
        raise Ungradable("its folder is a symbolic link")
    if not os.access(submission.folder, os.R_OK | os.X_OK):
        raise Ungradable("the folder cannot be read")
    _check_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # a byte order mark says nothing
        if not text.strip():
            raise Ungradable(f"{path.name} is empty")
        raw = json.loads(text)
    except UnicodeDecodeError as error:
        raise Ungradable(f"{path.name} is not UTF-8 text") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise Ungradable(f"{path.name} is not JSON ({error})") from error
    except OSError as error:
        raise Ungradable(f"{path.name} cannot be read ({error.strerror})") from error
    if not isinstance(raw, dict) or type(raw.get("nbformat")) is not int:
        raise Ungradable(f"{path.name} is JSON, but not a notebook")
    if raw["nbformat"] == 4:
        raw = _tidied(raw)
    # What is no Unicode (half a surrogate pair) could not be written again.
    return _as_notebook(path.name, sound_text(json.dumps(raw, ensure_ascii=False)))


_KNOWN = ("cells", "metadata", "nbformat")
_KNOWN_IN_CELLS = ("cell_type", "id", "metadata", "source", "attachments")


def _tidied(raw: dict[str, Any]) -> dict[str, Any]:
    """In format 4.5, without what that does not know or what no grading looks at: ids from before
    their time, keys of a later one, old outputs but for pictures."""
    kept = {name: raw[name] for name in _KNOWN if name in raw} | {"nbformat_minor": 5}
    cells = raw.get("cells")
    if isinstance(cells, list):
        kept["cells"] = [_tidied_cell(cell) if isinstance(cell, dict) else cell for cell in cells]
    return kept


def _tidied_cell(cell: dict[str, Any]) -> dict[str, Any]:
    kept = {name: cell[name] for name in _KNOWN_IN_CELLS if name in cell}
    if not _is_cell_id(kept.get("id")):
        kept.pop("id", None)
    if kept.get("cell_type") == "code":
        kept.pop("attachments", None)
        kept |= {"outputs": handed_in(cell.get("outputs")), "execution_count": None}
    return kept


def _is_cell_id(value: object) -> bool:
    return isinstance(value, str) and bool(_CELL_ID.fullmatch(value))


def _check_file(path: Path) -> None:
    if path.is_symlink():
        raise Ungradable(f"{path.name} is a symbolic link, not a file")
    if path.is_dir():
        raise Ungradable(f"{path.name} is a folder, not a file")
    if not path.is_file():
        others = sorted(other.name for other in path.parent.glob("*.ipynb"))
        if others:
            raise Ungradable(f"the notebook is named {others[0]}, it should be {path.name}")
        raise Ungradable(f"there is no notebook {path.name} in the submission")
    if path.stat().st_size > LARGEST_FILE:
        raise Ungradable(f"{path.name} has more than {LARGEST_FILE // 2**20} MiB")


def _as_notebook(name: str, text: str) -> NotebookNode:
    try:
        notebook: NotebookNode = nbformat.reads(text, as_version=4)
        _, notebook = normalize(notebook, strip_invalid_metadata=True)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises all sorts on odd notebooks
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Ungradable(f"{name} is not a valid notebook ({reason})") from error
    return notebook


def files_beside(submission: Submission) -> tuple[dict[str, bytes], list[str]]:
    """The plain files that came with the notebook, to lie beside it when it runs; and, a sentence
    each, what was left out."""
    files: dict[str, bytes] = {}
    refused: list[str] = []
    room = LARGEST_TOTAL
    try:
        for path in sorted(submission.folder.iterdir()):
            if path.name in (submission.notebook.name, TIMESTAMP_FILE, *IGNORED_FOLDERS):
                continue
            reason = _why_refused(path, room, len(files))
            if reason:
                refused.append(f"{named(path.name)} was left out: {reason}")
            else:
                files[path.name] = path.read_bytes()
                room -= len(files[path.name])
    except OSError as error:
        raise Ungradable(f"a file cannot be read ({error.strerror}: {error.filename})") from error
    if len(refused) > MOST_NAMED:
        refused[MOST_NAMED:] = [f"and {len(refused) - MOST_NAMED} more files were left out"]
    return files, refused


def named(name: str) -> str:
    """A file's name as it can be shown: one line, and no half characters."""
    return name if name.isprintable() else repr(sound_text(name))


def _why_refused(path: Path, room: int, count: int) -> str:
    kind = path.lstat().st_mode
    if stat.S_ISLNK(kind):
        return "it is a symbolic link"
    if stat.S_ISDIR(kind):
        return "it is a folder"
    if not stat.S_ISREG(kind):
        return "it is no plain file"
    size = path.lstat().st_size
    if size > LARGEST_FILE:
        return f"it has more than {LARGEST_FILE // 2**20} MiB"
    if size > room:
        return f"all files together have more than {LARGEST_TOTAL // 2**20} MiB"
    if count >= MOST_FILES:
        return f"there are more than {MOST_FILES} files"
    if not path.name.isprintable():
        return "its name cannot be printed"
    return ""


def prepared(
    submission: Submission, release: NotebookNode
) -> tuple[NotebookNode, dict[str, bytes], list[str]]:
    """The notebook as it is graded, the files beside it, and what was put right or left out;
    Ungradable where it cannot be graded."""
    submitted = read_submission(submission)
    files, refused = files_beside(submission)
    notebook, repairs = repair(submitted, release)
    return notebook, files, repairs + refused


def repair(notebook: NotebookNode, release: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The notebook as it is graded, and what had to be put right, a sentence each.

    Cells that belong to the assignment get the release's metadata, locked ones its source too;
    graded cells that are missing come back, copies become plain cells. All else is the student's.
    """
    notebook = deepcopy(notebook)
    originals = {grade_id_of(cell): cell for cell in release.cells if grade_id_of(cell)}
    notes: list[str] = []
    for cell in notebook.cells:
        _clear(cell)
    seen = _which_count(notebook, originals)
    last = {grade_id_of(cell): index for index, cell in enumerate(notebook.cells)}
    for index, cell in reversed(list(enumerate(notebook.cells))):
        name = grade_id_of(cell)
        original = originals.get(name)
        if original is None or index != seen[name]:
            if original is not None:
                which = "last" if seen[name] == last[name] else "unchanged"
                notes.append(f"cell {name} was there twice: the {which} one counts")
            cell.metadata = NotebookNode()  # nothing in it decides anything here
            continue
        if is_locked(original) and not _is_as_released(cell, original):
            notes.append(f"cell {name} was changed: the original counts")
        _restore(cell, original)
    notes += [
        _put_back(notebook, name, originals)
        for name in originals
        if _is_missing(name, seen, originals)
    ]
    _number_cells(notebook)
    notebook.metadata = nbformat.from_dict(_KEPT_METADATA)
    return notebook, notes


def _which_count(notebook: NotebookNode, originals: dict[str, NotebookNode]) -> dict[str, int]:
    """The index of the cell that counts, for each name: the last one, as in nbgrader; but of a
    locked cell rather one that is as released. A copy may hold what a student wrote into it."""
    counting: dict[str, int] = {}
    for index, cell in enumerate(notebook.cells):
        name = grade_id_of(cell)
        if name not in originals:
            continue
        original, before = originals[name], counting.get(name)
        if before is None or not (
            is_locked(original)
            and _is_as_released(notebook.cells[before], original)
            and not _is_as_released(cell, original)
        ):
            counting[name] = index
    return counting


def _is_as_released(cell: NotebookNode, original: NotebookNode) -> bool:
    return bool((cell.source, cell.cell_type) == (original.source, original.cell_type))


def _number_cells(notebook: NotebookNode) -> None:
    """An id of its own for each cell, as the current format asks for."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken: set[str] = set()
    for number, cell in enumerate(notebook.cells, start=1):
        given = cell.get("id")
        if not _is_cell_id(given) or given in taken:
            names = (f"cell-{number}" + "x" * more for more in itertools.count())
            cell.id = next(name for name in names if name not in taken)
        taken.add(cell.id)


def _restore(cell: NotebookNode, original: NotebookNode) -> None:
    cell.metadata = deepcopy(original.metadata)
    if not is_locked(original):
        if cell.cell_type == original.cell_type:
            return
        source = cell.source
    else:
        source = original.source
    identity = cell.get("id")
    cell.clear()
    cell.update(deepcopy(original))
    cell.source = source
    if identity:
        cell.id = identity


def _is_missing(name: str, seen: dict[str, int], originals: dict[str, NotebookNode]) -> bool:
    """Graded and locked cells must be there; an answer cell may have moved into another."""
    given = originals[name].metadata.nbgrader
    return name not in seen and bool(given.get("grade") or given.get("locked"))


def _put_back(notebook: NotebookNode, name: str, originals: dict[str, NotebookNode]) -> str:
    """Insert the original before the next cell of the assignment that is still there."""
    order = list(originals)
    later = set(order[order.index(name) + 1 :])
    places = [index for index, cell in enumerate(notebook.cells) if grade_id_of(cell) in later]
    cell = deepcopy(originals[name])
    _clear(cell)
    notebook.cells.insert(min(places, default=len(notebook.cells)), cell)
    return f"cell {name} was missing: it was put back"


def _clear(cell: NotebookNode) -> None:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = handed_in(cell.get("outputs")), None
    if not isinstance(cell.metadata.get("nbgrader", {}), dict):
        cell.metadata.pop("nbgrader")


def hash_of_notebook(notebook: NotebookNode) -> str:
    """A hash of what decides how a repaired notebook is graded: its cells, not their outputs."""
    cells = [[cell.cell_type, cell.source, grade_id_of(cell)] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()
