"""From a submission to its record: a function of data, which touches no database."""

from __future__ import annotations

import math
import secrets
import threading
import time
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache

from nbformat import NotebookNode

from autograder.build.cases import build_cases, build_public_cases
from autograder.course import GradingOptions
from autograder.exercises import TOPICS
from autograder.grading.hashes import Hashes, hash_of_cases, hash_of_questions
from autograder.grading.records import Record, packed_answers
from autograder.runner.notebook import (
    NotebookRun,
    RunLimits,
    Turn,
    add_verdicts,
    run_notebook,
)
from autograder.runner.session import by_case, within
from autograder.student.cases import CaseSet
from autograder.student.tensors import MalformedData


@dataclass(frozen=True)
class Drawn:
    """Secret cases with their hashes."""

    cases: CaseSet
    questions_hash: str
    cases_hash: str


class SecretCases:
    """The secret cases of one grading run: the same for all of a class, drawn anew in each run."""

    def __init__(self) -> None:
        self._seeds: dict[str, int] = {}
        self._drawn: dict[tuple[str, int], Drawn] = {}
        self._lock = threading.Lock()

    def of(self, topic: str, seed: int | None = None) -> Drawn:
        """Those that the run's seed gives; or another seed, to judge again."""
        with self._lock:
            if seed is None:
                seed = self._seeds.setdefault(topic, secrets.randbits(48))
            if (topic, seed) not in self._drawn:
                cases = build_cases(TOPICS[topic], seed)
                hashes = hash_of_questions(cases), hash_of_cases(cases)
                self._drawn[topic, seed] = Drawn(cases, *hashes)
            return self._drawn[topic, seed]


@cache
def public_bytes(topic: str) -> bytes:
    return build_public_cases(TOPICS[topic]).to_bytes()


def make_record(
    student: str,
    topic: str,
    notebook: NotebookNode,
    files: dict[str, bytes],
    hashes: Hashes,
    options: GradingOptions,
    drawn: SecretCases | None = None,
    seed: int | None = None,
    turn: Turn | None = None,
) -> Record:
    """Run a repaired notebook against secret cases: fresh ones, unless some were drawn for this
    run, or `seed` says which. Its cells run while `turn` is held."""
    started = time.monotonic()
    secret = (drawn or SecretCases()).of(topic, seed)
    limits = RunLimits.of(options)
    cases = within(secret.cases, limits.exercise)
    run = run_notebook(notebook, cases, public_bytes(topic), limits, files, turn)
    return Record(
        student,
        topic,
        hashes,
        seed=cases.seed,
        verdicts=run.verdicts(),
        executed=run.notebook,
        questions_hash=secret.questions_hash,
        cases_hash=secret.cases_hash,
        answers=packed_answers(run.responses),
        cases=by_case(cases, run.responses, run.seconds, run.verdicts()),
        troubles=run.troubles,
        flags=list(run.flags),
        limits=limits_of(options),
        met_limit=run.met_limit,
        sandboxed=options.sandbox,
        seconds=round(time.monotonic() - started, 2),
        graded_at=_now(),
    )


def limits_of(options: GradingOptions) -> dict[str, float]:
    """The limits on a notebook, as they are set."""
    limits = RunLimits.of(options)
    flat = {name: value for name, value in asdict(limits).items() if name != "kernel"}
    if limits.kernel is not None:
        flat |= {f"kernel_{name}": value for name, value in asdict(limits.kernel).items()}
    return {name: float(value) if value != float("inf") else 0.0 for name, value in flat.items()}


def judge_again(record: Record, secret: Drawn, hashes: Hashes) -> Record | None:
    """The record with new verdicts on the answers that it holds, without running anything; None
    where other questions would be asked now, or the answers cannot be read."""
    if secret.questions_hash != record.questions_hash:
        return None
    try:
        responses = record.responses
    except MalformedData:
        return None
    cases = within(secret.cases, record.limits.get("exercise") or math.inf)
    executed = deepcopy(record.executed)
    verdicts = NotebookRun(executed, cases, b"", RunLimits(), {}, responses).verdicts()
    add_verdicts(executed, verdicts)
    seconds = {name: [case.seconds for case in given] for name, given in record.cases.items()}
    return replace(
        record,
        hashes=hashes,
        verdicts=verdicts,
        executed=executed,
        cases_hash=secret.cases_hash,
        cases=by_case(cases, responses, seconds, verdicts),
        graded_at=_now(),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
