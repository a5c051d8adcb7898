"""The command `autograder`: one thin layer over the rest."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge, grade and report for the transformer course.",
)
FAILED, USAGE_ERROR, INTERRUPTED = 1, 2, 130


@app.callback()
def root() -> None:
    """Judge, grade and report for the transformer course."""


def fail(sentence: str, status: int = USAGE_ERROR) -> NoReturn:
    """End with one clear sentence on stderr."""
    typer.echo(f"autograder: {sentence}", err=True)
    raise typer.Exit(status)


@app.command("try")
def try_answers(
    topic: Annotated[str, typer.Argument(help="The topic, such as 01_self_attention.")],
    files: Annotated[list[Path], typer.Argument(help="Python files with answers.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the secret cases (default: fresh).")
    ] = None,
) -> None:
    """Judge the answers in plain Python FILES as if they were in TOPIC's notebook."""
    import secrets

    from autograder.build.cases import build_cases, without_training
    from autograder.exercises import TOPICS
    from autograder.runner.answers import try_files
    from autograder.student.check import text_of

    known_topics([topic])
    for file in files:
        check_readable(file)
    posed = TOPICS[topic]
    fresh = build_cases(posed, secrets.randbits(32) if seed is None else seed)
    cases = without_training(posed, fresh)
    for file, verdicts in try_files(cases, files):
        if not as_json and len(files) > 1:
            typer.echo(f"{file}")
        for verdict in verdicts:
            entry = {"file": str(file), "topic": topic, **verdict.to_data()}
            typer.echo(json.dumps(entry, ensure_ascii=False) if as_json else text_of(verdict))


@app.command()
def release(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics (default: all).")] = None,
    into: Annotated[Path | None, typer.Option(help="Folder of the releases.")] = None,
) -> None:
    """Make what students get from source/: stubs for solutions, public cases, the checks."""
    from autograder.build.release import build_release
    from autograder.course import Course, course_root

    with told():
        root = course_root()
        for topic in known_topics(topics):
            target = (into or root / "release") / topic
            build_release(Course.at(root), topic, target, database=into is None)
            typer.echo(f"release/{topic} is made from source/{topic}.")


@app.command()
def grade(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics (default: all).")] = None,
    submitted: Annotated[
        Path | None,
        typer.Option(help="Submissions, as STUDENT/TOPIC/TOPIC.ipynb (default: submitted/)."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Where gradebook, feedback and grades go (default: the course)."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Status 1 also where a submission could not be graded.")
    ] = False,
    no_sandbox: Annotated[
        bool,
        typer.Option("--no-sandbox", help="Run students' code with your rights, and say so."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show which scores would change, and write none of them."),
    ] = False,
    sample_class: Annotated[
        bool, typer.Option("--sample", help="Release, and grade the sample class (into sample/).")
    ] = False,
) -> None:
    """Grade what is new or changed; a bad submission costs only itself and is named."""
    from autograder.course import Course, course_root
    from autograder.grading.classrun import grade_class
    from autograder.grading.rehearsal import rehearse
    from autograder.grading.table import ClassProgress, print_changes, print_table

    if dry_run and sample_class:
        fail(
            "--dry-run changes nothing, and --sample makes the sample class anew: use one of them."
        )
    with told():
        root, chosen = course_root(), known_topics(topics)
        if sample_class:
            into = into or root / "sample"
            submitted = make_sample(root, into, chosen)
        course = Course.at(root, submitted, into)
        with ClassProgress() as progress:
            if dry_run:
                results, changes = rehearse(course, chosen, progress, sandbox=not no_sandbox)
            else:
                results = grade_class(course, chosen, progress, sandbox=not no_sandbox)
        if dry_run:
            print_changes(results, changes, course)
        else:
            print_table(results, course)
    bad = any(result.broken or (strict and not result.graded) for result in results)
    raise typer.Exit(1 if bad else 0)


def make_sample(root: Path, into: Path, topics: list[str]) -> Path:
    """Make releases anew and the sample class from them; the folder of its submissions."""
    from autograder.build.release import build_release
    from autograder.course import Course
    from autograder.sample import make_class

    for topic in topics:
        build_release(Course.at(root), topic, root / "release" / topic, database=False)
    count = make_class(root, into / "submitted", topics)
    typer.echo(f"Releases are made, and {count} submissions of the sample class in {into}.")
    return into / "submitted"


@app.command()
def verify(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics (default: all).")] = None,
    submitted: Annotated[
        Path | None,
        typer.Option(help="Submissions, as STUDENT/TOPIC/TOPIC.ipynb (default: submitted/)."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Where the class was graded (default: the course).")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Also run each notebook again, on the same cases.")
    ] = False,
) -> None:
    """Compute every score again from its record, and compare; status 1 where any differs."""
    from autograder.course import Course, course_root
    from autograder.grading.records import load_refusals
    from autograder.grading.table import VerifyProgress, print_verified
    from autograder.grading.verification import verify_class

    with told():
        course = Course.at(course_root(), submitted, into)
        with VerifyProgress() as progress:
            verified = verify_class(course, known_topics(topics), progress, run)
        refused = [key for key in load_refusals(course.refusals) if key[0] in known_topics(topics)]
        print_verified(verified, len(refused), course)
    raise typer.Exit(1 if any(item.problems for item in verified) else 0)


@app.command()
def feedback(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics (default: all).")] = None,
    into: Annotated[
        Path | None, typer.Option(help="Where the class was graded (default: the course).")
    ] = None,
) -> None:
    """Write feedback and grades.csv of a graded class anew, with the points given by hand since."""
    from autograder.course import Course, course_root
    from autograder.grading.feedback import write_feedback
    from autograder.grading.gradebook import write_grades

    with told():
        course = Course.at(course_root(), None, into)
        count = write_feedback(course, known_topics(topics))
        write_grades(course)
        typer.echo(
            f"Feedback for {count} submissions is in {course.into / 'feedback'}, grades are in "
            f"{course.into / 'grades.csv'}."
        )


@app.command()
def sample(
    into: Annotated[Path, typer.Option(help="Folder for the submissions.")],
    topics: Annotated[list[str] | None, typer.Argument(help="Topics (default: all).")] = None,
    size: Annotated[
        int | None, typer.Option(help="Number of students (default: as listed).")
    ] = None,
    mix: Annotated[str, typer.Option(help="Shares, as 'reference=3,unscaled=1'.")] = "",
) -> None:
    """Make the sample class's submissions from the release; or a class of SIZE for a load test."""
    from autograder.course import course_root
    from autograder.sample import make_class

    with told():
        count = make_class(course_root(), into, known_topics(topics), size, mix)
        typer.echo(f"{count} submissions are in {into}.")


@app.command()
def doctor(
    into: Annotated[Path | None, typer.Option(help="Where results go, as for grade.")] = None,
    json_wanted: Annotated[bool, typer.Option("--json", help="A list of objects.")] = False,
) -> None:
    """Check this machine and this course, and say what to do where something is not right."""
    from autograder.doctor import PROBLEM, as_json, examine, print_findings

    findings = examine(into)
    typer.echo(as_json(findings)) if json_wanted else print_findings(findings)
    raise typer.Exit(FAILED if any(finding.state == PROBLEM for finding in findings) else 0)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Option(help="The student's folder.")] = None,
) -> None:
    """Open JupyterLab as a student does, on copies that may be worked in; options go on to it."""
    from autograder.course import course_root
    from autograder.lab import prepare_lab

    with told():
        place = prepare_lab(course_root(), folder)
    typer.echo(f"Your copies of the lessons and assignments are in {place}.")
    os.chdir(place)
    os.environ.pop("OMP_NUM_THREADS", None)  # a student's own work may use all cores
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *context.args])


@contextmanager
def told() -> Iterator[None]:
    """Troubles end in their own sentence, not in a traceback."""
    from autograder.course import Trouble

    try:
        yield
    except Trouble as trouble:
        fail(str(trouble), FAILED)
    except KeyboardInterrupt:
        fail("stopped. What was done is kept; the next run goes on from there.", INTERRUPTED)


def known_topics(topics: list[str] | None) -> list[str]:
    """The topics asked for, or all; a usage error for one that does not exist."""
    from autograder.exercises import TOPICS

    for topic in topics or []:
        if topic not in TOPICS:
            fail(f"there is no topic {topic!r}; there are: {', '.join(TOPICS)}")
    return topics or list(TOPICS)


def check_readable(file: Path) -> None:
    """End with a sentence where a file cannot be read as text."""
    if file.exists() and not file.is_file():
        fail(f"cannot read {file}: it is no file")
    if file.suffix == ".ipynb":
        fail(f"{file} is a notebook: `try` judges Python files, `grade` judges notebooks")
    try:
        file.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"cannot read {file}: it is not UTF-8 text")


def main() -> None:
    # Tensors are small here, and processes run side by side: threads of one would only wait for
    # those of the others. To be said before torch is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a terminal may know fewer letters than a name has
            stream.reconfigure(errors="replace")
    sys.exit(app())
