"""Where a course keeps things, what may be set in it, and the place that students work in."""

from datetime import datetime
from pathlib import Path

import pytest
from conftest import Command

from autograder.course import Course, GradingOptions, Trouble, check_id, course_root
from autograder.lab import prepare_lab

TOPIC = "01_self_attention"
LESSON = Path("notebooks") / f"{TOPIC}.ipynb"
RELEASE = Path("release") / TOPIC / f"{TOPIC}.ipynb"


def test_the_root_is_found_from_any_folder_of_the_course(
    own_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (own_course.root, own_course.source_notebook(TOPIC).parent):
        monkeypatch.chdir(folder)
        assert course_root() == own_course.root


def test_a_folder_without_source_is_no_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nbgrader_config.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Trouble, match="This is no course"):
        course_root()


def test_results_go_to_the_root_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Course.at(tmp_path)
    assert (plain.submitted, plain.into) == (tmp_path / "submitted", tmp_path)
    assert plain.gradebook == tmp_path / "gradebook.db"
    monkeypatch.chdir(tmp_path)
    elsewhere = Course.at(tmp_path, Path("handed in"), Path("out"))
    assert elsewhere.submitted == tmp_path / "handed in"
    assert elsewhere.records == tmp_path / "out" / "verdicts"
    assert elsewhere.release_notebook(TOPIC) == tmp_path / RELEASE


def test_nbgrader_is_told_the_folders_of_the_run(course: Course, tmp_path: Path) -> None:
    run = Course.at(course.root, tmp_path / "submitted", tmp_path / "results")
    config = run.config()
    assert config.CourseDirectory.root == str(course.root)
    assert config.CourseDirectory.submitted_directory == str(tmp_path / "submitted")
    assert config.CourseDirectory.autograded_directory == str(tmp_path / "results/autograded")
    assert config.CourseDirectory.feedback_directory == str(tmp_path / "results/feedback")
    assert config.CourseDirectory.db_url == f"sqlite:///{tmp_path}/results/gradebook.db"
    assert config.JudgedExecute.records == str(tmp_path / "results/verdicts")
    names = [item.__name__ for item in config.Autograde.autograde_preprocessors]
    assert names[0] == "JudgedExecute", "the course's own file is heeded"
    assert not (tmp_path / "results").exists(), "asking writes nothing"


def test_preparing_leaves_nothing_but_the_folder(course: Course, tmp_path: Path) -> None:
    run = Course.at(course.root, None, tmp_path / "a" / "b")
    run.prepare()
    run.prepare()
    assert list(run.into.iterdir()) == []


def options_of(root: Path, *lines: str) -> GradingOptions:
    (root / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    return Course.at(root).options()


def test_options_come_from_the_configuration(tmp_path: Path) -> None:
    options = options_of(
        tmp_path, "c.GradingOptions.workers = 3", "c.GradingOptions.cell_timeout = 5"
    )
    assert (options.workers, options.cell_timeout) == (3, 5.0)
    assert Course.at(tmp_path).due_date(TOPIC) is None


@pytest.mark.parametrize(
    "given",
    [
        "2026-10-12 21:59:00 UTC",
        "2026-10-12 21:59",
        "2026-10-12T21:59:00Z",
        "2026-10-12 23:59:00 +02:00",
        "2026-10-12 23:59:00+0200",
    ],
)
def test_a_due_date_is_kept_in_utc(tmp_path: Path, given: str) -> None:
    options_of(tmp_path, f"c.GradingOptions.due_dates = {{'{TOPIC}': '{given}'}}")
    assert Course.at(tmp_path).due_date(TOPIC) == datetime(2026, 10, 12, 21, 59)


def test_without_a_configuration_there_are_defaults(tmp_path: Path) -> None:
    options = Course.at(tmp_path).options()
    assert (options.workers, options.cell_timeout, options.due_dates) == (0, 90.0, {})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("c.GradingOptions.workers = 'four'", "workers"),
        ("c.GradingOptions.workers = = 4", "SyntaxError"),
        ("raise KeyError('x')", "KeyError"),
    ],
)
def test_a_mistake_in_the_configuration_is_told(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(Trouble, match=rf"^nbgrader_config\.py.*{said}"):
        options_of(tmp_path, line)


@pytest.mark.parametrize("given", ["soon", "2026-10-12 23:59:00 CEST", "12.10.2026"])
def test_a_due_date_that_is_none_is_told(tmp_path: Path, given: str) -> None:
    options_of(tmp_path, f"c.GradingOptions.due_dates = {{'{TOPIC}': '{given}'}}")
    with pytest.raises(Trouble, match=f"'{given}' is no due date for 01_self_attention"):
        Course.at(tmp_path).due_date(TOPIC)


def test_check_ids_are_names_that_nbgrader_takes() -> None:
    assert check_id("TransformerBlock.norm_first") == "check_TransformerBlock_norm_first"


# ---- the student's place


def test_the_lab_holds_lessons_and_releases_as_the_course_does(
    own_course: Course, tmp_path: Path
) -> None:
    place = prepare_lab(own_course.root, tmp_path / "student")
    for path in (LESSON, RELEASE, Path("notebooks/figures.py")):
        assert (place / path).read_bytes() == (own_course.root / path).read_bytes()
    beside = {path.name for path in (place / RELEASE).parent.iterdir()}
    assert {"autograder_student.py", "public_cases.safetensors"} < beside
    assert {path.name for path in place.iterdir()} == {"notebooks", "release"}, "no solutions"
    assert prepare_lab(own_course.root) == own_course.root / "student"


def test_the_lab_never_overwrites_a_students_work(own_course: Course, tmp_path: Path) -> None:
    place = prepare_lab(own_course.root, tmp_path / "student")
    for path in (LESSON, RELEASE):
        (place / path).write_text("my work")
    (place / RELEASE.parent / "notes.txt").write_text("mine")
    (own_course.root / "notebooks" / "02_new.ipynb").write_text("{}")
    prepare_lab(own_course.root, place)
    for path in (LESSON, RELEASE):
        assert (place / path).read_text() == "my work"
    assert (place / RELEASE.parent / "notes.txt").exists()
    assert (place / "notebooks" / "02_new.ipynb").exists(), "what is new comes along"


def test_a_lab_without_a_release_says_so(autograder: Command, tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").touch()
    (tmp_path / "source").mkdir()
    said = autograder("lab", cwd=tmp_path)
    assert said.returncode == 1
    assert said.stderr == "autograder: There is no release yet: run `make release` first.\n"
    assert not (tmp_path / "student").exists()


def test_a_lab_that_cannot_be_written_says_so(own_course: Course, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Trouble, match=r"Cannot write to .*file/student"):
        prepare_lab(own_course.root, tmp_path / "file" / "student")
