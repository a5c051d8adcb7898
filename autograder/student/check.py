"""What a notebook imports: `check("attention", attention)` judges on the public cases at once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.student.bans import warm_up
from autograder.student.cases import CaseSet
from autograder.student.channel import Channel, answer_questions
from autograder.student.evaluation import Evaluator, kept_modes
from autograder.student.judge import in_time, judge
from autograder.student.tensors import MalformedData
from autograder.student.verdicts import Verdict, points_text, with_faults_below

CASES_FILE = "public_cases.safetensors"
_WIDTH = 96
_FETCH_AGAIN = "Fetch the assignment's folder again, and keep its files together."


class CheckFailed(AssertionError):
    """A failed check. Jupyter shows its message alone: no traceback, which would be of our code."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def load_check(topic: str, folder: str | Path | None = None) -> Check:
    """The check of a topic's notebook; its public cases lie beside the notebook, or in `folder`."""
    warm_up()
    channel = Channel.inherited()
    if channel is not None:
        channel.send({"type": "public"})
        data = bytes(channel.receive()["cases"].tolist())
    else:
        data = _find_cases(topic, folder).read_bytes()
    try:
        cases = CaseSet.from_bytes(data)
    except MalformedData as error:
        raise CheckFailed(f"{CASES_FILE} is damaged ({error}). {_FETCH_AGAIN}") from None
    if cases.topic != topic:
        raise CheckFailed(f"{CASES_FILE} holds the cases of {cases.topic}, not of {topic}.")
    return Check(cases, channel)


class Check:
    """Judges answers to the exercises of one topic, and remembers the last verdict on each."""

    def __init__(self, cases: CaseSet, channel: Channel | None = None) -> None:
        self.cases = cases
        self.channel = channel
        self.verdicts: dict[str, Verdict] = {}

    def __call__(self, exercise: str, answer: Callable[..., Any]) -> None:
        """Say how `answer` does; CheckFailed where it does not pass."""
        if exercise not in self.cases.specs:
            known = ", ".join(self.cases.specs)
            raise CheckFailed(f"There is no exercise {exercise!r} here. There are: {known}.")
        if self.channel is not None and not answer_questions(self.channel, exercise, answer):
            raise CheckFailed(f"✘ {exercise}: it took too long and was stopped.")
        verdict = self._judge(exercise, answer)
        if not verdict.passed:
            raise CheckFailed(text_of(verdict)) from None
        print(text_of(verdict))

    def summary(self) -> None:
        """Print what was checked so far, and the points."""
        specs = self.cases.specs
        width = max(24, *map(len, specs))
        for name, spec in specs.items():
            verdict = self.verdicts.get(name)
            status = "not checked yet" if verdict is None else verdict.status
            if verdict is not None and verdict.diagnosis:
                status += f" ({verdict.diagnosis})"
            got = 0.0 if verdict is None else verdict.points
            print(f"{name:{width}} {points_text(got):>4} / {points_text(spec.points):<4} {status}")
        got = sum(verdict.points for verdict in self.verdicts.values())
        most = sum(spec.points for spec in specs.values())
        print(f"{'together':{width}} {points_text(got):>4} / {points_text(most):<4}")

    def _judge(self, exercise: str, answer: Callable[..., Any]) -> Verdict:
        self.verdicts[exercise] = judge_answer(self.cases, exercise, answer)
        builds_on = {name: spec.builds_on for name, spec in self.cases.specs.items()}
        pointed = with_faults_below(list(self.verdicts.values()), builds_on)
        return next(verdict for verdict in pointed if verdict.exercise == exercise)


def judge_answer(cases: CaseSet, exercise: str, answer: Callable[..., Any]) -> Verdict:
    """Evaluate and judge in one process, as a notebook at home does."""
    spec = cases.specs[exercise]
    evaluator = Evaluator(answer, spec.banned, spec.time_limit)
    responses = []
    with kept_modes():
        for case in cases.cases[exercise]:
            responses.append(evaluator(case.question))
            if not in_time(responses[-1]):
                break
    return judge(spec, cases.cases[exercise], responses)


def text_of(verdict: Verdict) -> str:
    """A verdict for reading: a head line and the message, wrapped."""
    if verdict.passed:
        return f"✔ {verdict.exercise} {verdict.message[0].lower()}{verdict.message[1:]}"
    name = f" ({verdict.diagnosis})" if verdict.diagnosis else ""
    head = f"✘ {verdict.exercise}: {verdict.status}{name}, 0 of {points_text(verdict.max_points)}"
    lines = verdict.message.splitlines()
    body = [line if line.startswith("    ") else _wrapped(line) for line in lines]
    return "\n".join([f"{head} points.", *body])


def _wrapped(line: str) -> str:
    """Wrapped at spaces, but never inside a shape, a quotient or a piece of code."""
    glue = re.sub(r"\([\d, ]*\)|`[^`]*`|\w+ / \w+", lambda match: match[0].replace(" ", "\0"), line)
    filled = textwrap.fill(glue, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return filled.replace("\0", " ")


def _find_cases(topic: str, folder: str | Path | None) -> Path:
    """The case file in `folder`, beside the notebook, or in the course's `release` folder."""
    here = Path.cwd()
    places = [Path(folder)] if folder else [here]
    places += [parent / "release" / topic for parent in [here, *here.parents]]
    for place in places:
        if (place / CASES_FILE).is_file():
            return place / CASES_FILE
    raise CheckFailed(
        f"{CASES_FILE} is missing: it came with the assignment and belongs beside the notebook. "
        + _FETCH_AGAIN
    )
