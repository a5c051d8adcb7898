"""The judge's end of the line to one kernel or process.

The session decides which exercise may be answered, puts the secret questions, and keeps the
responses; the first offer for an exercise binds. No verdict is ever sent back.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace

import torch

from autograder.runner.flags import Flags
from autograder.student.cases import (
    Case,
    CaseSet,
    Outcome,
    Raised,
    Response,
    Spec,
    parse_response,
    to_data,
)
from autograder.student.channel import Channel, ChannelClosed, OutOfStep
from autograder.student.evaluation import PATIENCE, TIME_LIMIT
from autograder.student.judge import Finding, findings, in_time, judge
from autograder.student.tensors import MalformedData
from autograder.student.verdicts import FAILED, Verdict, not_defined, with_faults_below

GRACE = 5.0  # seconds beyond an exercise's limit before the judge stops waiting
MALFORMED = "MalformedAnswer"
MOST_MALFORMED, MOST_MESSAGES = 20, 10_000  # from one kernel; then the line is closed
MOST_BYTES = 32 * 2**20  # an honest notebook sends less than 1


@dataclass
class Session:
    """Serves `channel` with the cases of `secret`; `public` is what `load_check` is given.

    With `any_exercise` every exercise may be offered at any time, else only the one that `open`
    named last: which cell is running is known on the judge's side alone. `longest` bounds the
    seconds of wall time for one exercise; `seconds` has what each answer took.
    """

    channel: Channel
    secret: CaseSet
    public: bytes = b""
    any_exercise: bool = False
    responses: dict[str, list[Response]] = field(default_factory=dict)
    load_error: Raised | None = None
    longest: float = math.inf
    seconds: dict[str, list[float]] = field(default_factory=dict)
    flags: Flags = field(default_factory=Flags)
    _open: str | None = None
    _malformed: int = 0

    def open(self, exercise: str | None) -> None:
        """From now on `exercise` alone may be answered (None: nothing)."""
        self._open = exercise

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.serve, daemon=True)
        thread.start()
        return thread

    def serve(self) -> None:
        """Until the other side is gone, sends too much, or what cannot be followed."""
        while True:
            try:
                self._answer(self._receive())
            except OutOfStep as error:
                self.flags.note("malformed-message", str(error))
                break
            except MalformedData as error:
                self._note_malformed(error)
                if self._malformed > MOST_MALFORMED:
                    break
            except _TooMuch as error:
                self.flags.note("flooded-judge", str(error))
                break
            except (ChannelClosed, TimeoutError):
                break
        self.channel.close()

    def _receive(self) -> dict[str, object]:
        message = self.channel.receive()
        if self.channel.messages > MOST_MESSAGES:
            raise _TooMuch(f"more than {MOST_MESSAGES} messages came")
        if self.channel.bytes > MOST_BYTES:
            raise _TooMuch(f"more than {MOST_BYTES // 2**20} MiB came")
        return message

    def _note_malformed(self, error: MalformedData) -> None:
        self._malformed += 1
        self.flags.note("malformed-message", str(error))

    def _answer(self, message: dict[str, object]) -> None:
        kind = message["type"]
        if kind == "public":
            cases = torch.frombuffer(bytearray(self.public), dtype=torch.uint8)
            self.channel.send({"type": "public", "cases": cases})
        elif kind == "offer":
            self._question(message.get("exercise"))
        elif kind == "load-error" and self.any_exercise:
            self.load_error = _load_error(message)
        else:
            raise MalformedData(f"a message {str(kind)[:40]!r}, which is none of ours or not due")

    def _question(self, exercise: object) -> None:
        may = self.any_exercise or exercise == self._open
        if not isinstance(exercise, str) or exercise not in self.secret.specs:
            self.channel.send({"type": "closed"})
            raise MalformedData(f"an offer for {str(exercise)[:40]!r}, which is no exercise")
        if exercise in self.responses or not may:
            return self.channel.send({"type": "closed"})
        spec = self.secret.specs[exercise]
        given = self.responses.setdefault(exercise, [])
        limit = min(spec.time_limit, self.longest)
        self.channel.send({"type": "begin", "banned": spec.banned, "time_limit": limit})
        between = self.channel.end.gettimeout()
        self.channel.end.settimeout(patience_with(spec, self.longest))
        for case in self.secret.cases[exercise]:
            asked = time.monotonic()
            try:
                self.channel.send({"type": "question", "question": to_data(case.question)})
                given.append(self._response())
            except TimeoutError:
                given.append(_raising(TIME_LIMIT, ""))
                raise
            finally:
                passed = round(time.monotonic() - asked, 4)
                self.seconds.setdefault(exercise, []).append(passed)
            if not in_time(given[-1]):
                break
        self.channel.end.settimeout(between)
        self.channel.send({"type": "end"})

    def _response(self) -> Response:
        """What came, if it is a response; a failed case with the reason if it is not."""
        try:
            message = self._receive()
            if message["type"] != "response":
                raise MalformedData(f"a response was due, {str(message['type'])[:40]!r} came")
            return parse_response(message.get("response"))
        except OutOfStep:
            raise
        except MalformedData as error:
            self._note_malformed(error)
            return _raising(MALFORMED, str(error))

    def verdicts(self) -> list[Verdict]:
        """A verdict on every exercise of the topic, in order, from the responses there are."""
        return conclude(self.secret, self.responses, self.load_error)


class _TooMuch(Exception):
    """The other side has sent more than any honest one does."""


def patience_with(spec: Spec, longest: float = math.inf) -> float:
    """Seconds of wall time that the judge waits for one answer, on a machine that may be busy."""
    return min(PATIENCE * spec.time_limit, longest) + GRACE


def within(cases: CaseSet, longest: float) -> CaseSet:
    """The same cases, for no exercise of which there are more seconds."""
    specs = {
        name: replace(spec, time_limit=min(spec.time_limit, longest))
        for name, spec in cases.specs.items()
    }
    return replace(cases, specs=specs)


def conclude(
    cases: CaseSet, responses: dict[str, list[Response]], load_error: Raised | None = None
) -> list[Verdict]:
    """Verdicts from responses: a function of data, so that they can be computed again."""
    found = []
    for name, spec in cases.specs.items():
        if load_error is not None:
            given = [
                Response(Outcome("raised", raised=load_error), Outcome("raised", raised=load_error))
            ]
        else:
            given = responses.get(name, [])
        if given:
            asked = cases.cases[name]
            found.append(judge(spec, asked, examined(cases.topic, name, asked, given)))
        elif name in responses:
            found.append(died(name, spec.points))
        else:
            found.append(not_defined(name, spec.points))
    builds_on = {name: spec.builds_on for name, spec in cases.specs.items()}
    return with_faults_below(found, builds_on)


@dataclass(frozen=True)
class CaseVerdict:
    """The judgement of one answer, before all of them together are given a name, and the seconds
    that it took to come."""

    case: str
    passed: bool
    diagnosis: str | None
    detail: str
    seconds: float


def by_case(
    cases: CaseSet,
    responses: dict[str, list[Response]],
    seconds: dict[str, list[float]],
    verdicts: list[Verdict],
) -> dict[str, list[CaseVerdict]]:
    """The verdict on each case of each exercise, of which `verdicts` are the whole."""
    passed = {verdict.exercise for verdict in verdicts if verdict.passed}
    judged = {}
    for name, asked in cases.cases.items():
        found: list[Finding | None] = [None] * len(asked)
        if name not in passed:
            given = examined(cases.topic, name, asked, responses.get(name, []))
            found = findings(cases.specs[name], asked, given)
        took = seconds.get(name, [])
        judged[name] = [
            _case_verdict(
                case.name,
                found[index] if index < len(found) else NO_ANSWER,
                took[index] if index < len(took) else 0.0,
            )
            for index, case in enumerate(asked)
        ]
    return judged


NO_ANSWER = Finding(None, "no answer came.")


def _case_verdict(case: str, finding: Finding | None, seconds: float) -> CaseVerdict:
    if finding is None:
        return CaseVerdict(case, True, None, "", seconds)
    return CaseVerdict(case, False, finding.diagnosis, finding.detail, seconds)


def examined(
    topic: str, exercise: str, cases: list[Case], responses: list[Response]
) -> list[Response]:
    """Responses with what the judge can find out itself in place of what was said."""
    # Here, because answers are forked from a process that has imported this module, and must not
    # find the references in its memory.
    from autograder.exercises import TOPICS

    posed = next((item for item in TOPICS[topic].exercises if item.id == exercise), None)
    if posed is None or posed.examine is None:
        return responses
    return [
        posed.examine(case.question, response)
        for case, response in zip(cases, responses, strict=False)
    ]


def died(exercise: str, points: float) -> Verdict:
    text = "The process that ran your code ended before it gave an answer (exit, crash or memory)."
    return Verdict(exercise, FAILED, 0.0, points, "raised", text)


def _raising(kind: str, message: str) -> Response:
    outcome = Outcome("raised", raised=Raised(kind, message))
    return Response(outcome, outcome)


def _load_error(message: dict[str, object]) -> Raised:
    texts = {name: str(message.get(name, ""))[:300] for name in ("error", "text", "line", "where")}
    return Raised(texts["error"], texts["text"], texts["line"], texts["where"])
