"""What students get: made from the source alone, without a solution in it, and whole by itself."""

import ast
import json
import re
import shutil
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from nbformat import NotebookNode
from nbgrader.api import Gradebook

import autograder.build.bundle as bundling
from autograder.build.cases import build_cases, build_public_cases
from autograder.build.release import build_release, check_source, read_notebook
from autograder.course import Course, Trouble, check_id, grade_id_of
from autograder.exercises import TOPICS
from autograder.exercises.posing import Topic
from autograder.student.cases import CaseSet
from autograder.student.check import CASES_FILE

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "01_self_attention"
LARGEST = 1.5 * 2**20  # bytes of a released file


@pytest.fixture
def source(course: Course) -> NotebookNode:
    return read_notebook(course.source_notebook(TOPIC))


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


# ---- the release is made from the source, and only from it


@pytest.mark.parametrize("topic", TOPICS)
def test_the_release_in_git_is_the_one_that_the_source_makes(
    topic: str, course: Course, tmp_path: Path
) -> None:
    build_release(course, topic, tmp_path / topic, database=False)
    made, kept = files_in(tmp_path / topic), files_in(ROOT / "release" / topic)
    assert kept.keys() == made.keys()
    stale = [name for name in made if made[name] != kept[name]]
    assert not stale, "run `make release`"


def test_there_is_a_release_of_every_topic_and_nothing_else() -> None:
    assert {name.split("/")[0] for name in files_in(ROOT / "release")} == set(TOPICS)


def test_making_it_elsewhere_touches_nothing_in_the_course(own_course: Course) -> None:
    before = files_in(own_course.root)
    build_release(own_course, TOPIC, own_course.root.parent / "elsewhere", database=False)
    assert files_in(own_course.root) == before


def test_making_it_enters_the_assignment_and_its_points(own_course: Course) -> None:
    (own_course.release_notebook(TOPIC).parent / "old.txt").touch()
    build_release(own_course, TOPIC, own_course.release_notebook(TOPIC).parent)
    assert not (own_course.release_notebook(TOPIC).parent / "old.txt").exists()
    with Gradebook(f"sqlite:///{own_course.gradebook}") as gradebook:
        notebook = gradebook.find_notebook(TOPIC, TOPIC)
        points = {cell.name: cell.max_score for cell in notebook.grade_cells}
    wanted = {check_id(exercise.id): exercise.points for exercise in TOPICS[TOPIC].exercises}
    assert points == {**wanted, "written_scale": 2}


def test_no_file_is_too_large_for_a_slow_line() -> None:
    sizes = {name: len(data) for name, data in files_in(ROOT / "release").items()}
    assert sizes
    assert max(sizes.values()) < LARGEST, sizes


# ---- no solution is in it


def solutions_of(source: NotebookNode) -> list[str]:
    """The lines between the markers that tell something: a solution, a marking scheme."""
    between = re.compile(
        r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END|=== BEGIN MARK SCHEME ===(.*?)=== END",
        re.DOTALL,
    )
    found = [a or b for cell in source.cells for a, b in between.findall(cell.source)]
    written = [
        cell.source
        for cell in source.cells
        if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution")
    ]
    lines = [line.strip() for text in found + written for line in text.splitlines()]
    return [line for line in lines if len(line) > 15]


def reference_of(topic: str) -> Path:
    return ROOT / "solutions" / f"{topic[3:]}.py"


def definitions_in(source: str) -> dict[str, ast.stmt]:
    """Functions and classes of a module or a cell, by name."""
    return {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def reference_bodies(topic: str) -> list[str]:
    """The functions of the topic's own exercises, without their comments and the usual start of a
    constructor; of each the statements in a row, as short ones alone occur anywhere."""
    exercises = {exercise.id.partition(".")[0] for exercise in TOPICS[topic].exercises}
    return [
        "\n".join(map(ast.unparse, telling))
        for name, definition in definitions_in(reference_of(topic).read_text()).items()
        if name in exercises
        for node in ast.walk(definition)
        if isinstance(node, ast.FunctionDef)
        for telling in [[line for line in node.body if not is_docstring(line)]]
    ]


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_solution_is_in_the_release(topic: str) -> None:
    source = read_notebook(ROOT / "source" / topic / f"{topic}.ipynb")
    given = "\n".join(cell.source for cell in source.cells if "BEGIN" not in cell.source)
    secrets = [line for line in solutions_of(source) if line not in given]
    assert len(secrets) > 5
    notebook = read_notebook(ROOT / "release" / topic / f"{topic}.ipynb")
    text = "\n".join(cell.source for cell in notebook.cells)
    assert not [line for line in secrets if line in text]
    for marker in ("BEGIN SOLUTION", "END SOLUTION", "MARK SCHEME", "HIDDEN TESTS"):
        assert marker not in text


@pytest.mark.parametrize("topic", TOPICS)
def test_no_reference_is_in_any_released_file(topic: str) -> None:
    bodies = reference_bodies(topic)
    assert len(bodies) >= 3
    for path in (ROOT / "release" / topic).iterdir():
        if path.is_dir():
            continue
        texts = path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix == ".ipynb":
            cells = [c for c in read_notebook(path).cells if c.cell_type == "code"]
            texts = "\n".join(ast.unparse(ast.parse(cell.source)) for cell in cells)
        elif path.suffix == ".py":
            texts = ast.unparse(ast.parse(texts))
        assert not [body for body in bodies if body in texts], path.name


@pytest.mark.parametrize("topic", TOPICS)
def test_what_a_notebook_gives_is_what_the_references_hold(topic: str) -> None:
    """Up to docstrings and annotations; names that are no reference's are the notebook's own."""
    known: dict[str, set[str]] = {}  # topics 04 and 05 share names
    for path in (ROOT / "solutions").glob("*.py"):
        for name, node in definitions_in(path.read_text()).items():
            known.setdefault(name, set()).add(plain(node))
    notebook = read_notebook(ROOT / "source" / topic / f"{topic}.ipynb")
    for cell in notebook.cells:
        if cell.cell_type == "code" and not cell.metadata.get("nbgrader", {}).get("solution"):
            for name, node in definitions_in(cell.source).items():
                assert name not in known or plain(node) in known[name], f"{topic}: {name}"


def plain(definition: ast.stmt) -> str:
    """Its code without docstrings and annotations."""
    return ast.unparse(ast.fix_missing_locations(Unannotated().visit(deepcopy(definition))))


class Unannotated(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_ClassDef(self, node: Any) -> ast.stmt:
        node.body = [line for line in node.body if not is_docstring(line)]
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        return ast.Assign([node.target], node.value) if node.value is not None else None


@pytest.fixture(params=TOPICS)
def released(request: pytest.FixtureRequest) -> tuple[str, NotebookNode]:
    """Each topic, with its notebook as students get it."""
    topic = request.param
    return topic, read_notebook(ROOT / "release" / topic / f"{topic}.ipynb")


def test_a_stub_raises_and_says_what_to_write(released: tuple[str, NotebookNode]) -> None:
    topic, release = released
    stubs = {grade_id_of(cell): cell.source for cell in release.cells}
    for name in {exercise.id.partition(".")[0] for exercise in TOPICS[topic].exercises}:
        if name == "toy_task":  # judged on what the notebook trains: there is nothing to write
            continue
        (node,) = definitions_in(stubs[name]).values()
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        assert node.name == name
        assert len(ast.get_docstring(node) or "") > 40
        raised = [ast.unparse(line) for line in ast.walk(node) if isinstance(line, ast.Raise)]
        assert set(raised) == {"raise NotImplementedError()"}


def test_checks_are_locked_and_give_the_exercises_points(
    released: tuple[str, NotebookNode],
) -> None:
    topic, release = released
    checks = {
        grade_id_of(cell): cell
        for cell in release.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
    }
    exercises = TOPICS[topic].exercises
    assert list(checks) == [check_id(exercise.id) for exercise in exercises]
    for exercise in exercises:
        cell = checks[check_id(exercise.id)]
        given = cell.metadata.nbgrader
        assert (given.points, given.locked, given.solution) == (exercise.points, True, False)
        name = "model" if exercise.id == "toy_task" else exercise.id.partition(".")[0]
        assert cell.source == f'check("{exercise.id}", {name})'
        assert not cell.outputs


# ---- the public cases


def test_the_public_cases_are_those_of_the_exercises(course: Course) -> None:
    data = (course.release_notebook(TOPIC).parent / CASES_FILE).read_bytes()
    assert data == build_public_cases(TOPICS[TOPIC]).to_bytes()
    loaded = CaseSet.from_bytes(data)
    assert (loaded.topic, loaded.seed) == (TOPIC, TOPICS[TOPIC].public_seed)
    assert {name: spec.points for name, spec in loaded.specs.items()} == {
        exercise.id: exercise.points for exercise in TOPICS[TOPIC].exercises
    }
    assert all(loaded.cases.values())
    secret = build_cases(TOPICS[TOPIC], loaded.seed + 1).to_bytes()
    assert secret != data


def test_a_case_file_holds_no_code(course: Course) -> None:
    data = (course.release_notebook(TOPIC).parent / CASES_FILE).read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    structure = header.pop("__metadata__")["structure"]
    assert all(set(entry) == {"dtype", "shape", "data_offsets"} for entry in header.values())
    assert not re.search(r"\bdef \w+\(|\blambda\b|\bimport \w|__", structure)


# ---- the student side in one file


def top_level_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {
                leaf.id
                for target in node.targets
                for leaf in ast.walk(target)
                if isinstance(leaf, ast.Name)
            }
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_no_two_modules_of_the_bundle_use_one_name() -> None:
    folder = Path(bundling.autograder.student.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*bundling.MODULES, "__init__"}
    counts = Counter(
        name for module in bundling.MODULES for name in top_level_names(folder / f"{module}.py")
    )
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_bundle_needs_torch_alone() -> None:
    tree = ast.parse(bundling.bundle())
    compile(tree, "autograder_student.py", "exec")
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"torch"}


# Refuses what a student's machine lacks, then imports one of the two and checks an answer.
CHECK = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, ".")
import torch

{setup}
from {module} import CheckFailed, load_check

check = load_check("01_self_attention")
check("softmax", lambda scores, dim=-1: (
    (e := (scores - scores.amax(dim, keepdim=True)).exp()) / e.sum(dim, keepdim=True)
))

def attention_scores(q, k):
    return q @ k.transpose(-2, -1)

def attention(q, k, v):
    return missing_name

for name, answer in [("attention_scores", attention_scores), ("attention", attention)]:
    try:
        check(name, answer)
    except CheckFailed as failed:
        print(failed)
check.summary()
"""


def test_the_release_works_alone_and_as_the_package_does(
    course: Course, tmp_path: Path, python: Command
) -> None:
    folder = tmp_path / "my course"
    shutil.copytree(course.release_notebook(TOPIC).parent, folder)
    (folder / "alone.py").write_text(
        CHECK.format(
            missing='("autograder", "solutions", "nbgrader", "nbformat", "IPython", "numpy")',
            setup='sys.modules["numpy"] = None',
            module="autograder_student",
        )
    )
    (folder / "installed.py").write_text(
        CHECK.format(missing="()", setup="", module="autograder.student")
    )
    alone = python("-I", "-W", "ignore", "alone.py", cwd=folder)
    assert alone.returncode == 0, alone.stderr
    assert "✔ softmax" in alone.stdout
    assert "✘ attention_scores: failed (unscaled), 0 of 2 points" in alone.stdout
    assert "✘ attention: failed (raised), 0 of 3 points" in alone.stdout
    assert "missing_name" in alone.stdout
    assert alone.stderr == ""
    installed = python("installed.py", cwd=folder)
    assert alone.stdout == installed.stdout.replace("installed.py", "alone.py")


def test_without_its_cases_the_check_says_what_is_missing(
    course: Course, tmp_path: Path, python: Command
) -> None:
    shutil.copy(course.release_notebook(TOPIC).with_name(bundling.BUNDLE_FILE), tmp_path)
    code = "import autograder_student as s; s.load_check('01_self_attention')"
    result = python("-c", code, cwd=tmp_path)
    assert "public_cases.safetensors is missing" in result.stderr.splitlines()[-1]


# ---- a source that does not fit is refused


def check_cell(notebook: NotebookNode, exercise: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if grade_id_of(cell) == check_id(exercise))


@pytest.mark.parametrize("topic", TOPICS)
def test_the_source_fits_the_exercises(topic: str) -> None:
    check_source(read_notebook(ROOT / "source" / topic / f"{topic}.ipynb"), topic)


def test_other_points_are_refused(source: NotebookNode) -> None:
    check_cell(source, "softmax").metadata.nbgrader.points = 4
    with pytest.raises(Trouble, match=r"check_softmax gives 4 points, the exercise has 3\."):
        check_source(source, TOPIC)


def test_a_missing_check_is_refused(source: NotebookNode) -> None:
    source.cells.remove(check_cell(source, "attention"))
    with pytest.raises(Trouble, match=r"check cells and exercises differ in check_attention\."):
        check_source(source, TOPIC)


def test_an_extra_check_is_refused(source: NotebookNode) -> None:
    extra = deepcopy(check_cell(source, "softmax"))
    extra.metadata.nbgrader.grade_id = "check_more"
    source.cells.append(extra)
    with pytest.raises(Trouble, match=r"differ in check_more\."):
        check_source(source, TOPIC)


def test_a_check_that_comes_twice_is_refused(source: NotebookNode) -> None:
    source.cells.append(deepcopy(check_cell(source, "softmax")))
    with pytest.raises(Trouble, match=r"check_softmax is there twice"):
        check_source(source, TOPIC)


def test_a_check_without_points_is_refused(source: NotebookNode) -> None:
    del check_cell(source, "softmax").metadata.nbgrader["points"]
    with pytest.raises(Trouble, match=r"check_softmax gives no points, the exercise has 3\."):
        check_source(source, TOPIC)


def test_a_source_that_is_missing_is_told(own_course: Course) -> None:
    own_course.source_notebook(TOPIC).unlink()
    with pytest.raises(Trouble, match=r"01_self_attention\.ipynb is missing"):
        build_release(own_course, TOPIC, own_course.root / "elsewhere", database=False)


def test_a_refused_source_leaves_the_old_release(
    own_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_in(own_course.root / "release")
    topic = TOPICS[TOPIC]
    fewer = Topic(**{**vars(topic), "exercises": topic.exercises[:-1]})
    monkeypatch.setitem(TOPICS, TOPIC, fewer)
    with pytest.raises(Trouble, match="check_self_attention"):
        build_release(own_course, TOPIC, own_course.release_notebook(TOPIC).parent)
    assert files_in(own_course.root / "release") == before
