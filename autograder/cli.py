"""The command `autograder`: one thin layer over the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge, grade and report for the transformer course.",
)
USAGE_ERROR = 2


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
    seed: Annotated[int | None, typer.Option(help="Seed of the secret cases (default: fresh).")] = None,
) -> None:
    """Judge the answers in plain Python FILES as if they were in TOPIC's notebook."""
    import secrets

    from autograder.build.cases import build_cases, build_public_cases
    from autograder.exercises import TOPICS
    from autograder.runner.answers import try_files
    from autograder.student.check import text_of

    if topic not in TOPICS:
        fail(f"there is no topic {topic!r}; there are: {', '.join(TOPICS)}")
    for file in files:
        check_readable(file)
    secret = build_cases(TOPICS[topic], secrets.randbits(32) if seed is None else seed)
    cases = build_public_cases(TOPICS[topic]).joined_with(secret)
    for file, verdicts in try_files(cases, files):
        for verdict in verdicts:
            entry = {"file": str(file), "topic": topic, **verdict.to_data()}
            typer.echo(json.dumps(entry, ensure_ascii=False) if as_json else text_of(verdict))


def check_readable(file: Path) -> None:
    """End with a sentence where a file cannot be read as text."""
    try:
        file.read_text(encoding="utf-8")
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"cannot read {file}: it is not UTF-8 text")


def main() -> None:
    sys.exit(app())
