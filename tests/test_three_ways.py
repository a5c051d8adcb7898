"""The same scores three ways: our command, nbgrader's, and the button in formgrader."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, TOPIC, Command, make_course
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook

from autograder.build.release import build_release
from autograder.course import Course
from autograder.sample import Sample, load_samples, write_submission

TOKEN = "three-ways"
FORGED = '''
"""Answers nothing, and claims to have answered everything right."""
import IPython
from IPython.display import HTML, Javascript, display

display(HTML("<script>stored()</script><img src=x onerror='stored()'>"), Javascript("stored()"))

class Forged(dict):
    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        print("softmax: right (3 of 3 points)")
        return 1.0

check = Forged()
IPython.get_ipython().user_ns["check"] = check


def softmax(scores, dim=-1):
    return scores
'''
# Right, wrong, one that raises, one with a check copied, one that is handed in late, a damaged one
# and a forged one, which no entry of the sample class is.
STUDENTS = ("alder", "cedar", "katsura", "larch", "nutmeg", "oak")
DAMAGED, FORGER = "larch", "viper"


@dataclass(frozen=True)
class Class:
    """Submissions, the same in three courses, and the points of each cell, by way."""

    students: list[str]
    points: dict[str, dict[tuple[str, str], float]]
    nurseries: set[int]  # process ids of those that the server had
    left: list[str]  # processes that the server left behind
    pages: list[str]  # what formgrader shows of the forger's notebook, by way


@pytest.fixture(scope="module")
def three_ways(
    tmp_path_factory: pytest.TempPathFactory, autograder: Command, python: Command
) -> Class:
    ours, plain, pressed = (submitted(tmp_path_factory.mktemp(name)) for name in "abc")
    ended = autograder("grade", TOPIC, cwd=ours.root)
    assert ended.returncode == 0, ended.stderr
    python("-m", "nbgrader", "autograde", TOPIC, cwd=plain.root)
    students = [place.name for place in sorted(pressed.submitted.iterdir())]
    nurseries: set[int] = set()
    with formgrader(ours.root) as server:
        pages = [server.page_of(ours, FORGER)]
    with formgrader(pressed.root) as server:
        for student in students:
            said = server.press(student)
            assert said["success"] == (student != DAMAGED), said
            nurseries.add(server.nursery)
        pages.append(server.page_of(pressed, FORGER))
        born = descendants(server.process.pid)
    left = [line for pid, line in born.items() if outlives(pid)]
    courses = {"autograder grade": ours, "nbgrader autograde": plain, "formgrader": pressed}
    points = {way: points_in(course) for way, course in courses.items()}
    return Class(students, points, nurseries, left, pages)


def submitted(root: Path) -> Course:
    """A course with the class's submissions, its assignment entered in the gradebook."""
    course = make_course(root / "course")
    samples = {item.student: item for item in load_samples(course.root) if item.topic == TOPIC}
    for student in STUDENTS:
        write_submission(course.root, course.submitted, samples[student])
    (course.root / "forged.py").write_text(FORGED)
    write_submission(course.root, course.submitted, Sample(TOPIC, FORGER, "forged", "forged.py"))
    path = course.submitted / FORGER / TOPIC / f"{TOPIC}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(new_markdown_cell("**Bold** <script>stored()</script>"))
    notebook.cells.append(new_markdown_cell("<img src=x onerror='stored()'>"))
    nbformat.write(notebook, path)
    build_release(course, TOPIC, course.release_notebook(TOPIC).parent)
    return course


def points_in(course: Course) -> dict[tuple[str, str], float]:
    """The points of each graded code cell, by student and cell; of a damaged notebook, for which
    nbgrader leaves rows without points, and our command none, there are none."""
    with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
        return {
            (entered.student.id, grade.name): grade.auto_score
            for entered in gradebook.assignment_submissions(TOPIC)
            for notebook in entered.notebooks
            for grade in notebook.grades
            if grade.cell.cell_type == "code" and grade.auto_score is not None
        }


# ---- the server


@dataclass
class Server:
    """A Jupyter server with formgrader, as a browser speaks to it."""

    process: subprocess.Popen[bytes]
    url: str
    opener: urllib.request.OpenerDirector
    cookies: CookieJar

    def press(self, student: str) -> dict[str, object]:
        """What the button says that autogrades a student's submission."""
        path = f"formgrader/api/submission/{TOPIC}/{student}/autograde"
        request = urllib.request.Request(
            urllib.parse.urljoin(self.url, path), b"", {"X-XSRFToken": self.xsrf}
        )
        with self.opener.open(request, timeout=240) as answer:
            said: dict[str, object] = json.loads(answer.read())
        return said

    def page_of(self, course: Course, student: str) -> str:
        """What a person who grades by hand sees of a notebook."""
        with Gradebook(f"sqlite:///{course.gradebook}") as gradebook:
            (notebook,) = gradebook.find_submission(TOPIC, student).notebooks
            path = f"formgrader/submissions/{notebook.id}"
        with self.opener.open(urllib.parse.urljoin(self.url, path), timeout=60) as answer:
            page: str = answer.read().decode()
        return page

    @property
    def nursery(self) -> int:
        """The process that forks its kernels; 0 where there is none."""
        lines = descendants(self.process.pid).items()
        return next((pid for pid, line in lines if line.startswith("bwrap")), 0)

    @property
    def xsrf(self) -> str:
        return next(str(cookie.value) for cookie in self.cookies if cookie.name == "_xsrf")


@contextlib.contextmanager
def formgrader(root: Path) -> Iterator[Server]:
    """The server that `jupyter lab` starts, without the browser, on a free port."""
    runtime = root.parent / "runtime"
    options = ["--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root"]
    options += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *options],
        cwd=root,
        env={**os.environ, "JUPYTER_RUNTIME_DIR": str(runtime), "HOME": str(root.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        cookies = CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
        server = Server(process, address_of(process, runtime), opener, cookies)
        for page in (f"api/me?token={TOKEN}", f"formgrader/manage_submissions/{TOPIC}"):
            visit(opener, urllib.parse.urljoin(server.url, page))
        yield server
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def visit(opener: urllib.request.OpenerDirector, url: str) -> None:
    """Open a page; again for a while where nobody listens yet: the file comes before."""
    end = time.monotonic() + 60
    while True:
        try:
            return opener.open(url, timeout=60).close()
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def address_of(process: subprocess.Popen[bytes], runtime: Path) -> str:
    """Where it listens, once it does: it says so in a file."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(ValueError):  # half of it is written
                return str(json.loads(file.read_text())["url"])
        time.sleep(0.1)
    raise AssertionError(f"the server did not start (status {process.poll()})")


def descendants(pid: int) -> dict[int, str]:
    """The processes that came of one, and their command lines."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            with contextlib.suppress(OSError):  # it ended meanwhile
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                found |= descendants(child)
    return found


def outlives(pid: int, seconds: float = 10) -> bool:
    """Whether it is there still after some seconds: to end takes a moment."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    return Path(f"/proc/{pid}").exists()


# ---- what must be alike


@pytest.mark.parametrize("way", ["nbgrader autograde", "formgrader"])
def test_each_cell_has_the_same_points(three_ways: Class, way: str) -> None:
    assert three_ways.points[way] == three_ways.points["autograder grade"]


def test_points_are_those_that_each_submission_is_worth(three_ways: Class) -> None:
    worth = {item.student: item.points for item in load_samples(ROOT) if item.topic == TOPIC}
    for way, points in three_ways.points.items():
        sums = {student: 0.0 for student, _ in points}
        for (student, _), given in points.items():
            sums[student] += given
        expected = {name: worth.get(name, 0.0) for name in three_ways.students if name != DAMAGED}
        assert sums == expected, way


def test_one_nursery_serves_the_server_and_ends_with_it(three_ways: Class) -> None:
    assert len(three_ways.nurseries) == 1
    assert 0 not in three_ways.nurseries
    assert three_ways.left == []


def test_formgraders_page_runs_nothing_of_a_students(three_ways: Class) -> None:
    """It is part of the instructor's own session, where a script could give points."""
    for page in three_ways.pages:
        assert "<strong>Bold</strong>" in page, "it is the student's page"
        assert "&lt;script&gt;stored()" in page, "and what was typed is shown"
        assert re.findall(r"<script[^>]*>\s*stored", page) == []
        assert re.findall(r"<img[^>]*onerror", page) == []
