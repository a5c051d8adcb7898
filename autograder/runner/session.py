"""The judge's end of the line to one kernel or process.

The session decides which exercise may be answered, puts the secret questions, and keeps the
responses; the first offer for an exercise binds. No verdict is ever sent back.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch

from autograder.student.cases import (
    Case,
    CaseSet,
    Outcome,
    Raised,
    Response,
    parse_response,
    to_data,
)
from autograder.student.channel import Channel, ChannelClosed
from autograder.student.evaluation import PATIENCE, TIME_LIMIT
from autograder.student.judge import in_time, judge
from autograder.student.tensors import MalformedData
from autograder.student.verdicts import FAILED, Verdict, not_defined, with_faults_below

GRACE = 5.0  # seconds beyond an exercise's limit before the judge stops waiting
MALFORMED = "MalformedAnswer"


@dataclass
class Session:
    """Serves `channel` with the cases of `secret`; `public` is what `load_check` is given.

    With `any_exercise` every exercise may be offered at any time, else only the one that `open`
    named last: which cell is running is known on the judge's side alone.
    """

    channel: Channel
    secret: CaseSet
    public: bytes = b""
    any_exercise: bool = False
    responses: dict[str, list[Response]] = field(default_factory=dict)
    load_error: Raised | None = None
    _open: str | None = None

    def open(self, exercise: str | None) -> None:
        """From now on `exercise` alone may be answered (None: nothing)."""
        self._open = exercise

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.serve, daemon=True)
        thread.start()
        return thread

    def serve(self) -> None:
        """Until the other side is gone, or sends what cannot be followed."""
        while True:
            try:
                self._answer(self.channel.receive())
            except (ChannelClosed, MalformedData, TimeoutError):
                self.channel.close()
                return

    def _answer(self, message: dict[str, object]) -> None:
        kind = message["type"]
        if kind == "public":
            cases = torch.frombuffer(bytearray(self.public), dtype=torch.uint8)
            self.channel.send({"type": "public", "cases": cases})
        elif kind == "offer":
            self._question(message.get("exercise"))
        elif kind == "load-error":
            self.load_error = _load_error(message)
        else:
            raise MalformedData(f"an unknown message {kind!r}")

    def _question(self, exercise: object) -> None:
        may = self.any_exercise or exercise == self._open
        if not isinstance(exercise, str) or exercise not in self.secret.specs or not may:
            return self.channel.send({"type": "closed"})
        if exercise in self.responses:
            return self.channel.send({"type": "closed"})
        spec = self.secret.specs[exercise]
        given = self.responses.setdefault(exercise, [])
        self.channel.send({"type": "begin", "banned": spec.banned, "time_limit": spec.time_limit})
        between = self.channel.end.gettimeout()
        self.channel.end.settimeout(PATIENCE * spec.time_limit + GRACE)
        for case in self.secret.cases[exercise]:
            try:
                self.channel.send({"type": "question", "question": to_data(case.question)})
                given.append(self._response())
            except TimeoutError:
                given.append(_raising(TIME_LIMIT, ""))
                raise
            if not in_time(given[-1]):
                break
        self.channel.end.settimeout(between)
        self.channel.send({"type": "end"})

    def _response(self) -> Response:
        message = self.channel.receive()
        try:
            if message["type"] != "response":
                raise MalformedData("a response was due")
            return parse_response(message.get("response"))
        except MalformedData as error:
            return _raising(MALFORMED, str(error))

    def verdicts(self) -> list[Verdict]:
        """A verdict on every exercise of the topic, in order, from the responses there are."""
        return conclude(self.secret, self.responses, self.load_error)


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
