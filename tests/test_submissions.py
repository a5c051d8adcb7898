"""Reading submissions, repairing them, and keeping records of how they were judged."""

import json
import os
import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.nbgraderformat import MetadataValidator

import autograder.grading.hashes as hashing
from autograder.course import Course, check_id, grade_id_of
from autograder.exercises import TOPICS
from autograder.grading.hashes import Hashes, hash_of_files, hash_of_judge
from autograder.grading.records import Record, load_record, record_path, save_record
from autograder.grading.submissions import (
    LARGEST_FILE,
    Submission,
    Ungradable,
    files_beside,
    find_submissions,
    hash_of_notebook,
    read_submission,
    repair,
)
from autograder.sample import fill
from autograder.student.verdicts import Verdict

TOPIC = "01_self_attention"
EXERCISES = [exercise.id for exercise in TOPICS[TOPIC].exercises]
GRADED = [check_id(name) for name in EXERCISES] + ["written_scale"]


@pytest.fixture
def filled(release: NotebookNode, course: Course) -> NotebookNode:
    """A submission with the reference's answers."""
    return fill(release, (course.root / "solutions" / "self_attention.py").read_text())


def cell_of(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if grade_id_of(cell) == name)


def names_of(notebook: NotebookNode) -> list[str]:
    return [grade_id_of(cell) for cell in notebook.cells if grade_id_of(cell)]


# ---- repair: what a student may have done, and what is said of it


def deleted_check(notebook: NotebookNode) -> None:
    notebook.cells.remove(cell_of(notebook, "check_attention"))


def copied_check(notebook: NotebookNode) -> None:
    place = notebook.cells.index(cell_of(notebook, "check_softmax"))
    notebook.cells.insert(place + 1, deepcopy(notebook.cells[place]))


def changed_check(notebook: NotebookNode) -> None:
    cell_of(notebook, "check_softmax").source = "print('3 points')"


def check_as_text(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "check_softmax")
    place = notebook.cells.index(cell)
    notebook.cells[place] = new_markdown_cell(cell.source, metadata=cell.metadata)


def answer_as_text(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "softmax")
    place = notebook.cells.index(cell)
    notebook.cells[place] = new_markdown_cell(cell.source, metadata=cell.metadata)


def written_as_code(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "written_scale")
    place = notebook.cells.index(cell)
    notebook.cells[place] = new_code_cell("because", metadata=cell.metadata)


def odd_metadata(notebook: NotebookNode) -> None:
    odd = [None, {}, "check_softmax", 3, [], {"grade_id": "check_nothing", "grade": True}]
    for number, odd_one in enumerate(odd):
        cell = new_code_cell(f"x = {number}")
        cell.metadata["nbgrader"] = odd_one
        notebook.cells.insert(2 * number, cell)


def emptied_metadata(notebook: NotebookNode) -> None:
    for name in GRADED:
        cell_of(notebook, name).metadata = nbformat.from_dict({"nbgrader": {}})


def odd_grade_ids(notebook: NotebookNode) -> None:
    for number, name in enumerate([None, 5, ["check_softmax"], {"a": 1}]):
        cell = new_code_cell("")
        cell.metadata["nbgrader"] = {"grade_id": name, "grade": True, "points": 100}
        notebook.cells.insert(number, cell)


def same_cell_ids(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.id = "cell-3"


def odd_cell_ids(notebook: NotebookNode) -> None:
    odd = [None, "", "a b", "x" * 65, 7, ["a"], "cell-9"]
    for cell, odd_one in zip(notebook.cells, odd, strict=False):
        cell["id"] = odd_one


def tags_on_checks(notebook: NotebookNode) -> None:
    for name in GRADED:
        cell_of(notebook, name).metadata["tags"] = ["skip-execution", "raises-exception"]


def moved_cells(notebook: NotebookNode) -> None:
    notebook.cells.reverse()


def moved_answer(notebook: NotebookNode) -> None:
    cell = cell_of(notebook, "attention")
    notebook.cells.remove(cell)
    notebook.cells.insert(2, new_code_cell(cell.source))


def no_cells(notebook: NotebookNode) -> None:
    notebook.cells = []


def more_points(notebook: NotebookNode) -> None:
    cell_of(notebook, "check_softmax").metadata.nbgrader.points = 300


def solved_check(notebook: NotebookNode) -> None:
    given = cell_of(notebook, "check_softmax").metadata.nbgrader
    given.update(solution=True, locked=False)


def other_kernel(notebook: NotebookNode) -> None:
    notebook.metadata = nbformat.from_dict({"kernelspec": {"name": "bash", "display_name": "B"}})


def nothing(notebook: NotebookNode) -> None:
    pass


BACK = "was missing: it was put back"
CHANGED = "was changed: the original counts"
DAMAGE: list[tuple[Callable[[NotebookNode], None], list[str]]] = [
    (nothing, []),
    (deleted_check, [f"cell check_attention {BACK}"]),
    (copied_check, ["cell check_softmax was there twice: the last one counts"]),
    (changed_check, [f"cell check_softmax {CHANGED}"]),
    (check_as_text, [f"cell check_softmax {CHANGED}"]),
    (answer_as_text, []),
    (written_as_code, []),
    (odd_metadata, []),
    (emptied_metadata, [f"cell {name} {BACK}" for name in GRADED]),
    (odd_grade_ids, []),
    (same_cell_ids, []),
    (odd_cell_ids, []),
    (tags_on_checks, []),
    (moved_cells, []),
    (moved_answer, []),
    (no_cells, [f"cell {name} {BACK}" for name in ["setup", *GRADED]]),
    (more_points, []),
    (solved_check, []),
    (other_kernel, []),
]


def validated(notebook: NotebookNode) -> NotebookNode:
    copy = deepcopy(notebook)
    nbformat.validate(copy)
    return copy


def assert_gradable(notebook: NotebookNode, release: NotebookNode) -> None:
    """Valid for Jupyter and nbgrader, with each cell that counts once, as it is in the release."""
    for before, after in zip(notebook.cells, validated(notebook).cells, strict=True):
        assert before.id == after.id, "nbformat gives a new id to a cell that has none of its own"
    MetadataValidator().validate_nb(notebook)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert sorted(set(names_of(notebook))) == sorted(names_of(notebook))
    assert set(GRADED) <= set(names_of(notebook)) <= set(names_of(release))
    for name in names_of(notebook):
        cell, original = cell_of(notebook, name), cell_of(release, name)
        assert (cell.cell_type, cell.metadata) == (original.cell_type, original.metadata)
        if original.metadata.nbgrader.locked:
            assert cell.source == original.source
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[item[0].__name__ for item in DAMAGE])
def test_what_was_damaged_is_repaired_and_said(
    damage: Callable, said: list[str], filled: NotebookNode, release: NotebookNode
) -> None:
    damage(filled)
    before = deepcopy(filled)
    repaired, notes = repair(filled, release)
    assert_gradable(repaired, release)
    assert notes == said
    assert filled == before, "repair works on a copy"
    assert repair(repaired, release) == (repaired, [])


@pytest.mark.parametrize("damage", [deleted_check, no_cells, emptied_metadata])
def test_a_check_that_is_put_back_comes_after_the_answer_and_in_order(
    damage: Callable, filled: NotebookNode, release: NotebookNode
) -> None:
    damage(filled)
    names = names_of(repair(filled, release)[0])
    assert [name for name in names if name in GRADED] == GRADED
    assert names[0] == "setup"
    for exercise in set(EXERCISES) & set(names):
        assert names.index(exercise) < names.index(check_id(exercise))


def test_a_released_notebook_needs_no_repair(release: NotebookNode) -> None:
    repaired, notes = repair(release, release)
    assert notes == []
    assert repaired.cells == release.cells


def test_answers_are_left_alone(filled: NotebookNode, release: NotebookNode) -> None:
    filled.cells.insert(3, new_code_cell("mine = 1"))
    repaired, _ = repair(filled, release)
    assert [cell.source for cell in repaired.cells] == [cell.source for cell in filled.cells]


def test_an_answer_made_to_text_by_mistake_is_code_again(
    filled: NotebookNode, release: NotebookNode
) -> None:
    answer = cell_of(filled, "softmax").source
    answer_as_text(filled)
    cell = cell_of(repair(filled, release)[0], "softmax")
    assert (cell.cell_type, cell.source) == ("code", answer)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "softmax", *GRADED]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["grade_id", "grade", "solution", "locked", "points", "task"]), inner
        )
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 60), json_values, st.booleans()), max_size=6))
def test_no_metadata_brings_repair_down(changes: list, release_text: str) -> None:
    release = nbformat.reads(release_text, as_version=4)
    notebook = deepcopy(release)
    for place, value, twice in changes:
        place %= len(notebook.cells)
        notebook.cells[place].metadata["nbgrader"] = value
        if twice:
            notebook.cells.insert(0, deepcopy(notebook.cells[place]))
    repaired, _ = repair(notebook, release)
    assert_gradable(repaired, release)
    assert repair(repaired, release) == (repaired, [])


@pytest.fixture(scope="module")
def release_text(course: Course) -> str:
    return course.release_notebook(TOPIC).read_text(encoding="utf-8")


# ---- reading


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    folder = tmp_path / "alder" / TOPIC
    folder.mkdir(parents=True)
    return Submission("alder", TOPIC, folder)


def absent(path: Path) -> None:
    pass


def renamed(path: Path) -> None:
    path.with_name("final.ipynb").write_text("{}")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    path.with_name("real").write_text("{}")
    path.symlink_to("real")


def a_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def text(content: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(content)


def many_brackets(path: Path) -> None:
    path.write_text("[" * 200_000)


UNREADABLE = [
    (absent, f"there is no notebook {TOPIC}.ipynb in the submission"),
    (renamed, f"the notebook is named final.ipynb, it should be {TOPIC}.ipynb"),
    (huge, "has more than 20 MiB"),
    (a_folder, f"{TOPIC}.ipynb is a folder, not a file"),
    (a_link, f"{TOPIC}.ipynb is a symbolic link, not a file"),
    (a_broken_link, f"{TOPIC}.ipynb is a symbolic link, not a file"),
    (text(""), f"{TOPIC}.ipynb is empty"),
    (text("softmax = 1"), "is not JSON"),
    (many_brackets, "is not JSON"),
    (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\x00"), "is not UTF-8 text"),
    (text("[1, 2]"), "is JSON, but not a notebook"),
    (text('{"cells": []}'), "is JSON, but not a notebook"),
    (text('{"nbformat": true, "cells": []}'), "not a"),
    (text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}'), "not a valid notebook"),
    (text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [7]}'), "not a valid"),
    (text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}'), "not a valid"),
    (text('{"nbformat": 99, "nbformat_minor": 0, "metadata": {}, "cells": []}'), "not a valid"),
]


@pytest.mark.parametrize(("put", "said"), UNREADABLE)
def test_what_cannot_be_graded_is_told_in_a_sentence(
    put: Callable[[Path], Any], said: str, submission: Submission
) -> None:
    put(submission.notebook)
    with pytest.raises(Ungradable) as reason:
        read_submission(submission)
    assert said in str(reason.value)
    assert "\n" not in str(reason.value)
    assert len(str(reason.value)) < 300


@pytest.mark.parametrize("version", [3, (4, 0), (4, 4), (4, 5)])
def test_notebooks_of_older_formats_are_graded_as_well(
    version: int | tuple[int, int],
    submission: Submission,
    filled: NotebookNode,
    release: NotebookNode,
) -> None:
    answers = [cell.source for cell in filled.cells]
    if version == 3:
        old = nbformat.convert(filled, 3)
    else:
        old = filled
        assert isinstance(version, tuple)
        old.nbformat_minor = version[1]
        if version < (4, 5):
            for cell in old.cells:
                del cell["id"]
    submission.notebook.write_text(json.dumps(old))
    repaired, notes = repair(read_submission(submission), release)
    assert notes == []
    assert_gradable(repaired, release)
    assert [cell.source for cell in repaired.cells] == answers
    again, _ = repair(read_submission(submission), release)
    assert hash_of_notebook(again) == hash_of_notebook(repaired)


def test_only_folders_of_the_topic_are_submissions(tmp_path: Path) -> None:
    for name in ("birch", "alder"):
        (tmp_path / "submitted" / name / TOPIC).mkdir(parents=True)
    (tmp_path / "submitted" / "cedar" / "02_other").mkdir(parents=True)
    (tmp_path / "submitted" / "readme.txt").touch()
    (tmp_path / "submitted" / "dogwood").mkdir()
    (tmp_path / "submitted" / "dogwood" / TOPIC).touch()
    found = find_submissions(Course.at(tmp_path), TOPIC)
    assert [item.student for item in found] == ["alder", "birch"]
    assert find_submissions(Course.at(tmp_path / "elsewhere"), TOPIC) == []


def test_plain_files_come_along_and_links_do_not(submission: Submission, tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_text("grades")
    submission.notebook.write_text("{}")
    (submission.folder / "data.csv").write_text("1,2")
    (submission.folder / "folder").mkdir()
    (submission.folder / "link").symlink_to(tmp_path / "gradebook.db")
    huge(submission.folder / "huge")
    os.mkfifo(submission.folder / "pipe")
    (submission.folder / "\udcff").write_text("")
    files, refused = files_beside(submission)
    assert files == {"data.csv": b"1,2"}
    assert refused == [
        "folder was left out: it is a folder",
        "huge was left out: it has more than 20 MiB",
        "link was left out: it is a symbolic link",
        "pipe was left out: it is no plain file",
        "'?' was left out: its name cannot be printed",
    ]


# ---- hashes


def test_the_hash_is_of_what_decides_and_not_of_outputs(filled: NotebookNode) -> None:
    before = hash_of_notebook(filled)
    other = deepcopy(filled)
    cell = cell_of(other, "softmax")
    cell.outputs, cell.execution_count = [new_output("stream", text="0.5")], 7
    cell.id = "another"
    assert hash_of_notebook(other) == before
    cell.source += "\n# changed"
    assert hash_of_notebook(other) != before
    for change in (moved_cells, copied_check, answer_as_text):
        other = deepcopy(filled)
        change(other)
        assert hash_of_notebook(other) != before


def test_the_hash_of_files_tells_names_and_bytes_apart() -> None:
    given = [{}, {"a": b""}, {"a": b"b"}, {"ab": b""}, {"b": b"a"}, {"a": b"", "b": b""}]
    assert len({hash_of_files(files) for files in given}) == len(given)
    assert hash_of_files({"a": b"1", "b": b"2"}) == hash_of_files({"b": b"2", "a": b"1"})


def test_the_hash_of_the_judge_follows_its_code(
    release: NotebookNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(hashing.autograder.__file__).parent
    shutil.copytree(package, tmp_path / "autograder")
    monkeypatch.setattr(hashing.autograder, "__file__", str(tmp_path / "autograder/__init__.py"))
    before = hash_of_judge(TOPIC, release)
    shutil.copytree(Path(hashing.solutions.__file__).parent, tmp_path / "a" / "solutions")
    init = str(tmp_path / "a" / "solutions" / "__init__.py")
    monkeypatch.setattr(hashing.solutions, "__file__", init)
    assert hash_of_judge(TOPIC, release) == before, "wherever the packages lie"
    for name in ("student/judge.py", "exercises/self_attention.py", "runner/session.py"):
        file = tmp_path / "autograder" / name
        original = file.read_text()
        file.write_text(original + "# changed\n")
        assert hash_of_judge(TOPIC, release) != before, name
        file.write_text(original)
    assert hash_of_judge(TOPIC, release) == before
    changed = deepcopy(release)
    cell_of(changed, "check_softmax").source += "\n"
    assert hash_of_judge(TOPIC, changed) != before


# ---- records


@pytest.fixture
def record(filled: NotebookNode) -> Record:
    cell_of(filled, "softmax").outputs = [new_output("stream", text="Größe ✔\n")]
    return Record(
        student="alder",
        topic=TOPIC,
        hashes=Hashes("a", "b", "c", "d"),
        seed=2**47,
        verdicts=[Verdict("softmax", "failed", 0.0, 3.0, "unstable", "exp(89) ✘")],
        executed=filled,
        repairs=["cell x was missing"],
        troubles=["the kernel ended in cell 3"],
        seconds=1.5,
    )


def test_a_record_is_loaded_as_it_was_saved(record: Record, tmp_path: Path) -> None:
    save_record(tmp_path, record)
    loaded = load_record(tmp_path, TOPIC, "alder")
    assert loaded == record
    assert loaded.fits(Hashes(*"abcd"), sandbox=True)
    others = ("xbcd", "axcd", "abxd", "abcx")
    assert not any(loaded.fits(Hashes(*hashes), sandbox=True) for hashes in others)
    again = [loaded.can_be_judged_again(Hashes(*hashes), sandbox=True) for hashes in others]
    assert again == [False, False, False, True]
    save_record(tmp_path, replace(record, seed=5))
    assert load_record(tmp_path, TOPIC, "alder") == replace(record, seed=5)
    assert os.listdir(tmp_path / TOPIC) == ["alder.json"]


def test_a_record_without_a_sandbox_does_not_stand_for_one_with_it(record: Record) -> None:
    record = replace(record, sandboxed=False)
    assert record.fits(record.hashes, sandbox=False)
    assert not record.fits(record.hashes, sandbox=True)


def test_a_record_that_met_a_limit_does_not_stand_for_one_under_others(record: Record) -> None:
    record = replace(record, limits={"cell": 5.0}, met_limit=True)
    assert record.fits(record.hashes, True, {"cell": 5.0})
    assert not record.fits(record.hashes, True, {"cell": 9.0})
    assert replace(record, met_limit=False).fits(record.hashes, True, {"cell": 9.0})


def cut(data: str) -> str:
    return data[: len(data) // 2]


def without(key: str) -> Callable[[str], str]:
    return lambda data: json.dumps({k: v for k, v in json.loads(data).items() if k != key})


def having(key: str, value: object) -> Callable[[str], str]:
    return lambda data: json.dumps(json.loads(data) | {key: value})


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        lambda data: "",
        lambda data: "null",
        lambda data: "[]",
        lambda data: '"text"',
        lambda data: "7",
        without("format"),
        without("seed"),
        without("verdicts"),
        having("format", 0),
        having("verdicts", None),
        having("verdicts", [{"exercise": "softmax"}]),
        having("executed", "text"),
        having("executed", {"cells": 3}),
        having("unknown", 1),
    ],
)
def test_a_record_that_is_not_whole_is_no_record(
    damage: Callable[[str], str], record: Record, tmp_path: Path
) -> None:
    save_record(tmp_path, record)
    path = record_path(tmp_path, TOPIC, "alder")
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert load_record(tmp_path, TOPIC, "alder") is None


def test_a_record_that_could_not_be_written_leaves_the_old_one(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_record(tmp_path, record)

    def full(*given: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        save_record(tmp_path, replace(record, seed=9))
    monkeypatch.undo()
    assert load_record(tmp_path, TOPIC, "alder") == record
