"""The frame holds: make's targets, the pins, the script of CI, and the making of .venv."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"setup", "lab", "lessons", "release", "grade", "feedback", "test", "bench", "clean"}
REAL_PYTHON = os.path.realpath(sys.executable)


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    # A make that runs the tests must not hand its own options to the make under test.
    own = ("MAKE", "MFLAGS", "PYTHON")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


# ---- make


def test_plain_make_lists_every_target_with_a_description() -> None:
    result = run("make")
    assert result.returncode == 0, result.stderr
    listed = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[1:])
    assert set(listed) == TARGETS
    assert all(len(text) > 10 for text in listed.values())


def test_a_class_of_ones_own_is_not_graded_into_the_sample() -> None:
    recipe = run("make", "-n", "grade", "SUBMITTED=class", "INTO=results").stdout
    assert '[ -z "class" ]' in recipe
    assert '--submitted "class" --into "results"' in recipe


@pytest.mark.parametrize("options", [[], ["ALL=1"]])
def test_clean_keeps_everybodys_work(tmp_path: Path, options: list[str]) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    work = ["submitted", "autograded", "feedback", "student", ".autograder", "solutions"]
    generated = ["sample", ".pytest_cache", "solutions/__pycache__", ".venv"]
    for name in work + generated:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "gradebook.db").touch()
    result = run("make", "clean", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert all((tmp_path / name / "file").exists() for name in work)
    assert (tmp_path / "gradebook.db").exists()
    left = {name for name in generated if (tmp_path / name).exists()}
    assert left == (set() if options else {".venv"})
    said = {line.removeprefix("removing ") for line in result.stdout.splitlines()}
    assert said == set(generated) - left


# ---- pins


def pins(name: str) -> dict[str, str]:
    """Package → version; a line that is no plain pin fails."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        requirement = line.split("#")[0].strip()
        if requirement:
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9a-z.]*)", requirement)
            assert match, f"{name}: {requirement} is not pinned as name==version"
            found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return found


def test_every_requirement_is_pinned_and_says_why() -> None:
    assert pins("requirements.txt")["torch"] == "2.13.0"
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        assert not line.strip() or "#" in line, f"{line}: why is it needed?"


def test_constraints_agree_with_the_requirements() -> None:
    constraints = pins("constraints.txt")
    requirements = pins("requirements.txt")
    assert {name: constraints.get(name) for name in requirements} == requirements


def test_every_pin_runs_on_the_oldest_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    wanted = {
        name: metadata.metadata(name)["Requires-Python"]
        for name in pins("constraints.txt")
        if any(metadata.distributions(name=name))
    }
    assert "torch" in wanted
    too_new = {
        name: versions
        for name, versions in wanted.items()
        if versions and not SpecifierSet(versions).contains(oldest)
    }
    assert not too_new


# ---- CI, and what no file may hold


def test_ci_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^make test$", script.read_text(encoding="utf-8"), re.MULTILINE)
    assert run("bash", "-n", script).returncode == 0


def files_in_git() -> list[Path]:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert listed.returncode == 0, listed.stderr
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_file_names_a_machine_or_a_registry() -> None:
    # Put together from parts, so that this file does not find itself.
    banned = [
        r"/" + r"home/[a-z][a-z0-9_-]*/",
        r"/" + r"Users/[A-Za-z][A-Za-z0-9_-]*/",
        r"/" + r"root/",
        r"/tmp/" + r"bash_jobs",
        r"files\." + r"pythonhosted",
        r"pypi" + r"\.org",
    ]
    if len(ROOT.parts) > 2:
        banned.append(re.escape(str(ROOT)) + r"\b")
    pattern = re.compile("|".join(banned).encode())
    found = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in files_in_git()
        if path.is_file() and (match := pattern.search(path.read_bytes()))
    ]
    assert not found, "\n".join(found)


# ---- tools/setup_environment.sh, with a Python that installs nothing

# It runs everything but venv and pip; those it notes in a file and, for venv, puts itself in place.
FAKE_PYTHON = """#!/usr/bin/env bash
here=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd -P)
case "$*" in
    *"-m venv"*)
        echo venv >>"{log}"
        mkdir -p "${{@: -1}}/bin" && cp "${{BASH_SOURCE[0]}}" "${{@: -1}}/bin/python" ;;
    *ensurepip*) [ ! -e "$here/no-ensurepip" ] ;;
    *"-m pip --version"*) [ ! -e "$here/no-pip" ] ;;
    *"-m pip"*) echo "pip ${{*: -4}}" >>"{log}"; [ ! -e "{failing}" ] ;;
    *) exec "{python}" "$@" ;;
esac
"""


class Place:
    """A folder with the script and the files it reads, and a fake Python outside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.venv = self.root / ".venv"
        self.log = folder / "log"
        self.pip_fails = folder / "pip-fails"
        self.python = folder / "bin" / "python3"
        (self.root / "tools").mkdir(parents=True)
        self.python.parent.mkdir()
        for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, self.root)
        shutil.copy(ROOT / "tools" / "setup_environment.sh", self.root / "tools")
        self.python.write_text(
            FAKE_PYTHON.format(log=self.log, failing=self.pip_fails, python=REAL_PYTHON),
            encoding="utf-8",
        )
        self.python.chmod(0o755)

    def setup(self, *options: str, **variables: str) -> subprocess.CompletedProcess:
        path = f"{self.python.parent}:{os.environ['PATH']}"
        script = self.root / "tools" / "setup_environment.sh"
        return run("bash", script, *options, cwd=self.root, **({"PATH": path} | variables))

    def calls(self) -> list[str]:
        """Every call of venv and pip since this was last asked."""
        if not self.log.exists():
            return []
        text = self.log.read_text(encoding="utf-8")
        self.log.unlink()
        return text.splitlines()

    def did(self) -> list[str]:
        return [call.split()[0] for call in self.calls()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def ready(place: Place) -> Place:
    result = place.setup()
    assert result.returncode == 0, result.stderr
    assert place.did() == ["venv", "pip", "pip"]
    return place


def test_from_nothing_it_installs_the_requirements_and_then_the_project(place: Place) -> None:
    result = place.setup()
    assert result.returncode == 0, result.stderr
    assert place.calls() == [
        "venv",
        "pip -r requirements.txt -c constraints.txt",
        "pip --no-deps --no-build-isolation -e .",
    ]
    assert result.stdout.startswith("Setting up the environment in .venv")


def test_a_matching_stamp_does_nothing_and_says_nothing(ready: Place) -> None:
    result = ready.setup()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert ready.did() == []


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt", "pyproject.toml"])
def test_a_changed_file_is_installed_into_the_same_environment(ready: Place, name: str) -> None:
    with open(ready.root / name, "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert ready.setup().returncode == 0
    assert ready.did() == ["pip", "pip"]


def test_a_failed_install_is_tried_again(ready: Place) -> None:
    (ready.venv / ".ready").unlink()
    ready.pip_fails.touch()
    result = ready.setup()
    assert result.returncode == 1
    assert "make setup" in result.stderr
    assert not (ready.venv / ".ready").exists()
    assert ready.did() == ["pip"]
    ready.pip_fails.unlink()
    assert ready.setup().returncode == 0
    assert ready.did() == ["pip", "pip"]


def break_python(place: Place) -> None:
    (place.venv / "bin" / "python").write_text("#!/nowhere/python\n", encoding="utf-8")


def remove_python(place: Place) -> None:
    (place.venv / "bin" / "python").unlink()


def break_pip(place: Place) -> None:
    (place.venv / "bin" / "no-pip").touch()
    (place.venv / ".ready").unlink()


def leave_unfinished(place: Place) -> None:
    (place.venv / ".place").unlink()
    (place.venv / ".ready").unlink()


def move_folder(place: Place) -> None:
    place.root = place.root.rename(place.root.with_name("moved"))
    place.venv = place.root / ".venv"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (break_python, "no Python that runs"),
        (remove_python, "no Python that runs"),
        (break_pip, "no pip that runs"),
        (leave_unfinished, "was not finished"),
        (move_folder, "was made for another folder"),
    ],
)
def test_a_broken_environment_is_made_anew(ready: Place, damage, said: str) -> None:
    damage(ready)
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert said in result.stdout
    assert ready.did() == ["venv", "pip", "pip"]
    assert ready.setup().stdout == ""


def test_a_package_cut_short_loses_its_record_and_a_whole_one_keeps_it(ready: Place) -> None:
    packages = ready.venv / "lib" / "python3.11" / "site-packages"
    for name in ("whole", "cut", "unfinished", "garbled"):
        info = packages / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (packages / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
        (info / "METADATA").touch()
        (info / "RECORD").write_text(f"{name}.py,sha256=,6\n", encoding="utf-8")
        (info / "INSTALLER").touch()
    (packages / "cut.py").write_text("x", encoding="utf-8")
    (packages / "unfinished-1.0.dist-info" / "INSTALLER").unlink()
    (packages / "garbled-1.0.dist-info" / "RECORD").write_text("garbled.py,sha", encoding="utf-8")
    (ready.venv / ".ready").unlink()
    result = ready.setup()
    assert result.returncode == 0, result.stderr
    assert [path.name for path in packages.glob("*.dist-info")] == ["whole-1.0.dist-info"]
    assert "cut short: cut\n" in result.stdout


def test_a_python_that_does_not_run_is_passed_over(place: Place) -> None:
    shim = place.python.with_name("python3.13")
    place.python.rename(shim)
    place.python.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    place.python.chmod(0o755)
    assert place.setup("--find-python").stdout == "python3.13\n"


def test_without_a_fit_python_one_sentence_says_so(ready: Place) -> None:
    tools = ready.python.with_name("tools")
    tools.mkdir()
    for name in ("bash", "dirname", "cat"):
        (tools / name).symlink_to(shutil.which(name) or name)
    result = ready.setup("--find-python", PATH=str(tools))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "Python 3.11 or newer" in result.stderr

    result = ready.setup(PYTHON="/nowhere/python3")
    assert result.returncode == 1
    assert "PYTHON=/nowhere/python3" in result.stderr
    assert result.stdout == ""
    assert (ready.venv / ".ready").exists()


@pytest.mark.parametrize("user", ["0", "1000"])
def test_where_python_cannot_make_environments_root_installs_what_is_missing(
    place: Place, user: str
) -> None:
    folder = place.python.parent
    (folder / "no-ensurepip").touch()
    for name, line in {
        "id": f"echo {user}",
        "apt-get": f'case "$*" in *install*python3.*-venv) rm "{folder}/no-ensurepip" ;; esac',
    }.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{line}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    result = place.setup(PYTHON=str(place.python))
    if user == "0":
        assert result.returncode == 0, result.stderr
        assert place.did() == ["venv", "pip", "pip"]
    else:
        assert result.returncode == 1
        assert result.stderr.count("\n") == 1
        assert "sudo apt-get install python3." in result.stderr


def test_two_at_once_install_once(place: Place) -> None:
    if not shutil.which("flock"):
        pytest.skip("no flock here")
    with ThreadPoolExecutor() as pool:
        results = [job.result() for job in [pool.submit(place.setup) for _ in range(2)]]
    assert [result.returncode for result in results] == [0, 0]
    assert sorted(place.did()) == ["pip", "pip", "venv"]


def test_it_is_not_made_from_itself(ready: Place) -> None:
    path = f"{ready.venv}/bin:{ready.python.parent}:{os.environ['PATH']}"
    remove_python(ready)
    (ready.venv / "bin" / "python3").symlink_to(ready.venv / "bin" / "python")
    assert ready.setup(PATH=path).returncode == 0
    assert ready.did() == ["venv", "pip", "pip"]
