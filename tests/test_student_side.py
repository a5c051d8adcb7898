"""What runs beside student code: packed values, the channel, the session, the evaluator, check."""

import contextlib
import json
import math
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load
from torch import Tensor

from autograder.build.cases import build_cases, build_public_cases
from autograder.exercises import TOPICS
from autograder.runner.session import Session, conclude
from autograder.student.cases import CaseSet, Outcome, Question, Response, to_data
from autograder.student.channel import LARGEST_MESSAGE, Channel, ChannelClosed, answer_questions
from autograder.student.check import Check, CheckFailed
from autograder.student.evaluation import (
    TIME_LIMIT,
    Clock,
    Evaluator,
    TimeLimitReached,
    as_outcome,
    time_limit,
)
from autograder.student.tensors import DTYPES, MalformedData, pack, unpack
from autograder.student.verdicts import FAILED, MISSING, PASSED, Verdict
from solutions import self_attention as reference

TOPIC = TOPICS["01_self_attention"]
quick = settings(deadline=None, max_examples=80)


@cache
def public() -> CaseSet:
    return build_public_cases(TOPIC)


@cache
def secret() -> CaseSet:
    return build_cases(TOPIC, 99)


# ---- packed values

dtypes = st.sampled_from(list(DTYPES.values()))
shapes = st.lists(st.integers(0, 3), max_size=3)


@st.composite
def any_tensor(draw: st.DrawFn) -> Tensor:
    dtype, shape = draw(dtypes), draw(shapes)
    odd = st.sampled_from([math.inf, -math.inf, math.nan, -0.0])
    entries = st.booleans() if dtype == torch.bool else st.integers(0, 100)
    if dtype.is_floating_point:
        entries = st.integers(0, 100).map(float) | odd
    count = math.prod(shape)
    found = draw(st.lists(entries, min_size=count, max_size=count))
    return torch.tensor(found, dtype=dtype).reshape(shape)


names = st.text(max_size=5).filter(lambda name: name != "$tensor")
plain_values = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8)
values = st.recursive(
    plain_values | any_tensor(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def same(one: Any, two: Any) -> bool:
    if isinstance(one, Tensor):
        return (
            isinstance(two, Tensor)
            and (one.dtype, one.shape) == (two.dtype, two.shape)
            and bool(((one == two) | ((one != one) & (two != two))).all())
        )
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return type(one) is type(two) and one == two


@quick
@given(values)
def test_what_is_packed_comes_back(value: Any) -> None:
    assert same(unpack(pack(value)), value)


@quick
@given(st.lists(any_tensor(), max_size=4))
def test_the_safetensors_library_reads_what_pack_writes(tensors: list[Tensor]) -> None:
    found = load(pack(tensors)).values()
    assert all(any(same(tensor, other) for other in found) for tensor in tensors)


def test_views_are_packed_by_their_entries() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    for view in (tensor.T, tensor[:, 1], tensor.expand(2, 2, 3), tensor[::2]):
        assert same(unpack(pack(view)), view)


def header(
    entry: dict[str, Any], structure: str = '{"$tensor":0}', body: bytes = bytes(8)
) -> bytes:
    text = json.dumps({"__metadata__": {"structure": structure}, "0": entry}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8)


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_a_header_written_by_hand_is_read() -> None:
    assert same(unpack(header(GOOD)), torch.zeros(2))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        (2**63).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"null",
        (2).to_bytes(8, "little") + b"\xff\xfe",
        header(GOOD | {"shape": [-2]}),
        header(GOOD | {"shape": [-1, -2]}),
        header(GOOD | {"shape": [2.0]}),
        header(GOOD | {"shape": [True, 2]}),
        header(GOOD | {"shape": "ab"}),
        header(GOOD | {"shape": None}),
        header(GOOD | {"shape": [3]}),
        header(GOOD | {"shape": [2**62, 2**62]}),
        header(GOOD | {"shape": [0, 2**80], "data_offsets": [0, 0]}),
        header(GOOD | {"shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}),
        header(GOOD | {"shape": [1] * 100_000 + [2]}),
        header(GOOD | {"dtype": "F33"}),
        header(GOOD | {"dtype": ["F32"]}),
        header(GOOD | {"data_offsets": [0, 16]}),
        header(GOOD | {"data_offsets": [8, 0]}),
        header(GOOD | {"data_offsets": [-8, 0]}),
        header(GOOD | {"data_offsets": [0]}),
        header(GOOD, structure='{"$tensor":7}'),
        header(GOOD, structure="[" * 200_000 + "]" * 200_000),
        header(GOOD, structure="{"),
        header({}, structure="1"),
    ],
)
def test_malformed_bytes_are_said_to_be_so(data: bytes) -> None:
    with pytest.raises(MalformedData):
        unpack(data)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_json_do_not_break_reading(number: str) -> None:
    with contextlib.suppress(MalformedData):
        assert isinstance(unpack(header(GOOD, structure=number)), float)
    with pytest.raises(MalformedData):
        unpack(header(GOOD).replace(b"[2]", number[:3].encode()))


@quick
@given(st.data())
def test_no_damage_raises_anything_else(data: st.DataObject) -> None:
    good = pack({"a": torch.arange(4.0), "b": [torch.ones(2, dtype=torch.bool), "text", 3]})
    damaged = bytearray(good)
    if data.draw(st.booleans()):
        damaged = damaged[: data.draw(st.integers(0, len(good) - 1))]
    for _ in range(data.draw(st.integers(0, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedData):
        unpack(bytes(damaged))


def test_overlapping_tensors_are_copies() -> None:
    text = {"__metadata__": {"structure": '[{"$tensor":0},{"$tensor":1}]'}, "0": GOOD, "1": GOOD}
    raw = json.dumps(text).encode()
    first, second = unpack(len(raw).to_bytes(8, "little") + raw + bytes(8))
    first += 1
    assert second.tolist() == [0, 0]


def test_a_file_that_holds_no_cases_is_malformed() -> None:
    for value in ({}, [], 3, {"specs": {"a": {}}, "cases": {}}, to_data(public()) | {"cases": {}}):
        with pytest.raises(MalformedData):
            CaseSet.from_bytes(pack(value))


# ---- the channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours, 5.0), Channel(theirs, 5.0)


def test_a_message_arrives_as_it_was(ends: tuple[Channel, Channel]) -> None:
    ends[0].send({"type": "a", "value": torch.arange(3)})
    assert same(ends[1].receive(), {"type": "a", "value": torch.arange(3)})


def test_too_long_a_message_is_neither_sent_nor_read(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(MalformedData):
        ends[0].send({"type": "a", "value": torch.zeros(LARGEST_MESSAGE // 4 + 1)})
    ends[0].end.sendall((LARGEST_MESSAGE + 1).to_bytes(8, "little"))
    with pytest.raises(MalformedData):
        ends[1].receive()


@pytest.mark.parametrize("value", [[], 3, None, {}, {"type": 3}, {"kind": "a"}])
def test_a_message_without_a_type_is_malformed(ends: tuple[Channel, Channel], value: Any) -> None:
    data = pack(value)
    ends[0].end.sendall(len(data).to_bytes(8, "little") + data)
    with pytest.raises(MalformedData):
        ends[1].receive()


def test_garbage_is_malformed(ends: tuple[Channel, Channel]) -> None:
    ends[0].end.sendall((20).to_bytes(8, "little") + b"x" * 20)
    with pytest.raises(MalformedData):
        ends[1].receive()


@pytest.mark.parametrize("sent", [b"", b"\x05\x00", (9).to_bytes(8, "little") + b"abc"])
def test_a_line_that_closes_within_a_message_is_closed(
    ends: tuple[Channel, Channel], sent: bytes
) -> None:
    ends[0].end.sendall(sent)
    ends[0].close()
    with pytest.raises(ChannelClosed):
        ends[1].receive()


def test_sending_on_a_closed_line_is_closed(ends: tuple[Channel, Channel]) -> None:
    ends[1].close()
    with pytest.raises(ChannelClosed):
        ends[0].send({"type": "a"})


def test_a_wait_is_bounded() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        Channel(ours, 0.05).receive()


# ---- the session


class Recording(Channel):
    """A channel that remembers what was sent through it."""

    def __init__(self, end: socket.socket, seconds: float | None = None) -> None:
        super().__init__(end, seconds)
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        super().send(message)


@contextlib.contextmanager
def serving(any_exercise: bool = False) -> Iterator[tuple[Session, Channel, Recording]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        recording = Recording(ours, 10.0)
        session = Session(recording, secret(), public().to_bytes(), any_exercise)
        thread = session.start()
        yield session, Channel(theirs, 10.0), recording
        with contextlib.suppress(OSError):
            theirs.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert not thread.is_alive()


def by_name(verdicts: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.exercise: verdict for verdict in verdicts}


def test_an_answer_is_judged_on_the_secret_cases() -> None:
    with serving() as (session, kernel, _):
        session.open("softmax")
        answer_questions(kernel, "softmax", reference.softmax)
        session.open("attention")
        answer_questions(kernel, "attention", lambda q, k, v: (v, k))
    verdicts = by_name(session.verdicts())
    assert verdicts["softmax"].status == PASSED
    assert verdicts["attention"].status == FAILED
    assert verdicts["attention_scores"].status == MISSING


def test_an_exercise_that_is_not_open_is_refused() -> None:
    with serving() as (session, kernel, _):
        answer_questions(kernel, "softmax", reference.softmax)
        session.open("attention")
        answer_questions(kernel, "softmax", reference.softmax)
        session.open(None)
        answer_questions(kernel, "attention", reference.attention)
    assert session.responses == {}


@pytest.mark.parametrize("exercise", ["nothing", None, 3, ["softmax"]])
def test_an_exercise_that_does_not_exist_is_refused(exercise: Any) -> None:
    with serving(any_exercise=True) as (session, kernel, _):
        kernel.send({"type": "offer", "exercise": exercise})
        assert kernel.receive()["type"] == "closed"
    assert session.responses == {}


def test_the_first_offer_binds() -> None:
    with serving(any_exercise=True) as (session, kernel, _):
        answer_questions(kernel, "softmax", lambda scores, dim=-1: scores)
        answer_questions(kernel, "softmax", reference.softmax)
    assert by_name(session.verdicts())["softmax"].status == FAILED


MALFORMED: list[dict[str, Any]] = [
    {"type": "response"},
    {"type": "response", "response": None},
    {"type": "response", "response": {}},
    {"type": "response", "response": {"plain": 3}},
    {"type": "verdict", "response": "passed"},
    {"type": "offer", "exercise": "softmax"},
]


@pytest.mark.parametrize("bad", MALFORMED)
def test_a_malformed_response_fails_its_case_and_the_session_lives_on(bad: dict[str, Any]) -> None:
    with serving(any_exercise=True) as (session, kernel, _):
        kernel.send({"type": "offer", "exercise": "attention_scores"})
        assert kernel.receive()["type"] == "begin"
        evaluator = Evaluator(reference.attention_scores, [], 10.0)
        message, first = kernel.receive(), True
        while message["type"] == "question":
            response = to_data(evaluator(Question(**message["question"])))
            kernel.send(bad if first else {"type": "response", "response": response})
            message, first = kernel.receive(), False
        answer_questions(kernel, "softmax", reference.softmax)
    verdicts = by_name(session.verdicts())
    assert verdicts["attention_scores"].status == FAILED
    assert verdicts["softmax"].status == PASSED


def test_responses_of_the_wrong_kinds_are_malformed() -> None:
    good = to_data(Response(Outcome("tensor", [torch.ones(1)]), Outcome("tensor", [torch.ones(1)])))
    for change in (
        {"plain": {"kind": "tensor", "values": [], "raised": None}},
        {"plain": {"kind": "tensor", "values": ["text"], "raised": None}},
        {"plain": {"kind": "raised", "values": [], "raised": None}},
        {"gradients": {"scores": "none"}},
        {"gradients": []},
        {"gradient_error": {"type": "E"}},
        {"changed_inputs": [3]},
        {"changed_results": 1},
        {"banned": "softmax"},
        {"more": 1},
    ):
        with serving(any_exercise=True) as (session, kernel, _):
            kernel.send({"type": "offer", "exercise": "softmax"})
            kernel.receive()
            kernel.receive()
            kernel.send({"type": "response", "response": good | change})
            assert kernel.receive()["type"] == "question"
        assert session.responses["softmax"][0].plain.raised is not None, change


def test_nothing_that_judges_is_ever_sent_to_the_kernel() -> None:
    with serving(any_exercise=True) as (_, kernel, recording):
        kernel.send({"type": "public"})
        kernel.receive()
        for exercise in secret().specs:
            answer_questions(kernel, exercise, getattr(reference, exercise))
            answer_questions(kernel, exercise, getattr(reference, exercise))
    allowed: dict[str, set[str]] = {
        "public": {"type", "cases"},
        "begin": {"type", "banned", "time_limit"},
        "question": {"type", "question"},
        "end": {"type"},
        "closed": {"type"},
    }
    assert {message["type"] for message in recording.sent} == set(allowed)
    questions = 0
    for message in recording.sent:
        assert set(message) == allowed[message["type"]]
        if message["type"] == "question":
            questions += 1
            asked = {item.name for item in fields(Question)}
            assert set(message["question"]) == asked
        if message["type"] == "public":
            assert bytes(message["cases"].tolist()) == public().to_bytes()
    assert questions == sum(map(len, secret().cases.values()))


def test_a_kernel_that_goes_away_costs_the_exercise_it_was_in() -> None:
    with serving(any_exercise=True) as (session, kernel, _):
        answer_questions(kernel, "softmax", reference.softmax)
        kernel.send({"type": "offer", "exercise": "attention"})
        kernel.receive()
    verdicts = by_name(session.verdicts())
    assert verdicts["softmax"].status == PASSED
    assert (verdicts["attention"].status, verdicts["attention"].diagnosis) == (FAILED, "raised")


def test_an_answer_that_stops_early_does_not_pass() -> None:
    cases = secret()
    evaluator = Evaluator(reference.softmax, [], 10.0)
    some = [evaluator(case.question) for case in cases.cases["softmax"][:-1]]
    assert by_name(conclude(cases, {"softmax": some}))["softmax"].status == FAILED


# ---- the evaluator

QUESTION = Question({"x": torch.arange(3.0)}, [torch.ones(3)])


def ask(answer: Any, banned: list[str] | None = None, seconds: float = 10.0) -> Response:
    return Evaluator(answer, banned or [], seconds)(QUESTION)


def test_gradients_are_those_of_the_outputs() -> None:
    response = ask(lambda x: x**2)
    assert response.gradients["x"] is not None
    assert response.gradients["x"].tolist() == [0, 2, 4]


def test_an_output_that_does_not_depend_has_no_gradient() -> None:
    assert ask(lambda x: torch.zeros(3)).gradients == {"x": None}


def test_an_answer_that_works_without_gradients_alone_says_why() -> None:
    response = ask(lambda x: torch.from_numpy(x.numpy() * 2))
    assert response.traced.raised is None
    assert response.gradient_error is not None
    assert "grad" in response.gradient_error.message


def test_changed_inputs_are_named() -> None:
    assert ask(lambda x: x.add_(1)).changed_inputs == ["x"]
    assert ask(lambda x: x.unsqueeze_(0)).changed_inputs == ["x"]
    assert ask(lambda x: x + 1).changed_inputs == []


def test_a_banned_call_is_found_in_the_recorded_call_too() -> None:
    response = ask(lambda x: x.softmax(0) if x.requires_grad else x, ["softmax"])
    assert response.banned
    assert not ask(lambda x: x.exp(), ["softmax"]).banned


def test_watching_does_not_fail_an_answer() -> None:
    def answer(x: Tensor) -> Tensor:
        if torch.overrides._get_current_function_mode() is not None:
            raise RuntimeError("somebody is watching")
        return x

    response = ask(answer, ["softmax"])
    assert response.plain.kind == response.traced.kind == "tensor"


def loop_forever(x: Tensor) -> Tensor:
    while True:
        pass


def loop_with_a_bare_except(x: Tensor) -> Tensor:
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722
            pass


def swallow_and_return(x: Tensor) -> Tensor:
    try:
        while True:
            pass
    except BaseException:
        return x


@pytest.mark.parametrize("answer", [loop_forever, loop_with_a_bare_except, swallow_and_return])
def test_an_endless_loop_is_stopped(answer: Any) -> None:
    started = time.monotonic()
    response = ask(answer, seconds=0.3)
    assert time.monotonic() - started < 5
    assert response.plain.raised is not None
    assert response.plain.raised.type == TIME_LIMIT


def test_a_time_limit_leaves_nothing_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeLimitReached), time_limit(Clock(0.05)):
        time.sleep(5)
    with time_limit(Clock(0.05)):
        pass
    time.sleep(0.2)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_outside_the_main_thread_there_is_no_limit_and_no_error() -> None:
    found: list[Response] = []
    thread = threading.Thread(target=lambda: found.append(ask(lambda x: x)))
    thread.start()
    thread.join()
    assert found[0].plain.kind == "tensor"


def test_what_an_answer_prints_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    ask(lambda x: print("loud") or x)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        (None, "None"),
        (3.0, "float"),
        ([1.0], "list of float"),
        ((), "tuple"),
        (torch.ones(2), "tensor"),
        ([torch.ones(2)], "sequence"),
        ((torch.ones(2), 3), "tuple of Tensor, int"),
    ],
)
def test_what_came_is_told_by_its_kind(returned: Any, kind: str) -> None:
    assert as_outcome(returned).kind == kind


@pytest.mark.parametrize(
    "returned",
    [
        torch.ones(2).to_sparse(),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2, device="meta"),
        torch.zeros(()).expand(10**12),
    ],
)
def test_what_is_no_plain_tensor_is_none(returned: Tensor) -> None:
    outcome = as_outcome(returned)
    assert outcome.kind not in ("tensor", "sequence")
    assert outcome.values == []


# ---- check


@pytest.fixture
def check() -> Check:
    return Check(public())


def unscaled(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT


def breaks_off(q: Tensor, k: Tensor) -> Tensor:
    return q @ k  # the student's line


def test_a_right_answer_is_told_so(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    check("softmax", reference.softmax)
    assert "3 of 3 points" in capsys.readouterr().out


def test_a_wrong_answer_is_told_why_and_where(check: Check) -> None:
    with pytest.raises(CheckFailed) as caught:
        check("attention_scores", unscaled)
    text = "\n".join(caught.value._render_traceback_())
    assert "unscaled" in text
    assert "sqrt(d)" in text
    assert "scores[0, 0] should be" in text
    assert "Traceback" not in text


def test_an_exception_is_told_by_the_students_own_line(check: Check) -> None:
    with pytest.raises(CheckFailed) as caught:
        check("attention_scores", breaks_off)
    text = "\n".join(caught.value._render_traceback_())
    assert "return q @ k  # the student's line" in text
    assert "of breaks_off" in text
    assert "Traceback" not in text
    assert str(Path(torch.__file__).parent) not in text
    assert "evaluation.py" not in text


def test_an_unknown_exercise_is_told_with_the_known_ones(check: Check) -> None:
    with pytest.raises(CheckFailed, match="attention_scores"):
        check("sofmax", reference.softmax)


def test_a_fault_may_lie_below(check: Check) -> None:
    with pytest.raises(CheckFailed):
        check("softmax", lambda scores, dim=-1: scores)
    with pytest.raises(CheckFailed, match="`softmax`"):
        check("attention", lambda q, k, v: (v, k))


def test_the_summary_counts_points(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    check("softmax", reference.softmax)
    with pytest.raises(CheckFailed):
        check("attention_scores", unscaled)
    check.summary()
    out = capsys.readouterr().out
    assert "failed (unscaled)" in out
    assert "not checked yet" in out


def test_the_clock_counts_work_and_a_share_of_waiting() -> None:
    clock = Clock(0.1)
    time.sleep(0.2)
    assert clock.left() > 0, "others may keep the machine busy"
    time.sleep(0.4)
    assert clock.left() < 0, "what waits for ever is stopped as well"


def test_a_slow_answer_is_not_asked_for_more() -> None:
    cases = public()
    specs = {name: replace(spec, time_limit=0.2) for name, spec in cases.specs.items()}
    calls: list[int] = []

    def slow(scores: Tensor, dim: int = -1) -> Tensor:
        calls.append(1)
        enough = time.thread_time() + 0.15
        while time.thread_time() < enough:
            pass
        return reference.softmax(scores, dim)

    with pytest.raises(CheckFailed, match="too-slow"):
        Check(replace(cases, specs=specs))("softmax", slow)
    assert len(calls) < 5
