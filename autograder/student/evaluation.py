"""Running an answer on questions: everything that happens beside student code, and no judging.

What an answer prints is dropped, what it raises is told by the student's own line, and it is
stopped when the exercise's time is over.
"""

from __future__ import annotations

import contextlib
import dis
import io
import linecache
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from autograder.student.bans import watch
from autograder.student.cases import Outcome, Question, Raised, Response, Setup, sound_text
from autograder.student.probes import PROBES, UNWATCHED
from autograder.student.tensors import DTYPE_NAMES

NO_MODULE = "which is no nn.Module"  # how the kind of such an outcome ends
PATIENCE = 5.0  # how many seconds of waiting count as one of work
TIME_LIMIT = "time limit"  # the `Raised.type` of an answer that was stopped; no class has it
_LONGEST_TEXT = 300
_MOST_ENTRIES = 2**20  # of a tensor that is worth comparing
_NOT_THE_STUDENTS = (
    "<frozen",
    str(Path(__file__).parent.parent) if __package__ else __file__,
    str(Path(torch.__file__).parent),
    *(sysconfig.get_path(place) for place in ("stdlib", "platstdlib", "purelib", "platlib")),
)


class TimeLimitReached(BaseException):
    """Raised inside an answer that takes too long; no `except Exception` catches it."""


class NoModule(TypeError):
    """What a class gave is no module."""


class Evaluator:
    """Puts questions to one answer, in order, within one time limit (seconds) for all of them."""

    def __init__(self, answer: Callable[..., Any], banned: list[str], time_limit: float) -> None:
        self.answer = answer
        self.banned = banned
        self.clock = Clock(time_limit)
        self._kept: list[tuple[Tensor, Tensor]] = []  # what was returned, and a copy of it then
        self._seen: list[str] = []  # banned calls on the present question
        self._watching, self._tracing = True, False
        self._modules: dict[bool, nn.Module] = {}  # the last one built by position, and by name

    def __call__(self, question: Question) -> Response:
        self._seen, self._watching, self._tracing = [], question.probe not in UNWATCHED, False
        given = question.inputs()
        # Before the call, for what a module remembers of the last one; else after it.
        quiet = self._unrecorded(question) if question.setup and question.setup.again else None
        arguments = fresh_copies(given)
        plain, returned = self._call(lambda: self._target(question)(*arguments.values()))
        changed = changed_inputs(given, arguments) + self._changed_parameters(question)
        if self._may_be_our_fault(plain.raised):
            again = fresh_copies(given)
            plain, returned = self._call(lambda: self._target(question)(*again.values()))
        changed_results = not all(same_entries(now, then) for now, then in self._kept)
        if not changed_results:
            self._kept += zip(tensors_in(returned), plain.values, strict=False)
        quiet = quiet or self._unrecorded(question)
        self._watching, self._tracing = question.probe not in UNWATCHED, True
        traced, gradients, error = self._trace(question, given)
        if self._may_be_our_fault(traced.raised or error):
            traced, gradients, error = self._trace(question, given)
        return Response(
            plain=plain,
            traced=traced,
            gradients=gradients,
            gradient_error=error,
            changed_inputs=changed,
            changed_results=changed_results,
            banned=self._seen,
            unrepeatable=quiet is not None and not _is_same(quiet, plain),
            **self._parameters(question),
        )

    def _target(self, question: Question, by_name: bool = False) -> Callable[..., Any]:
        """What is to be called with the question's arguments."""
        target = self.answer
        if question.setup is not None:
            setup, built = question.setup, self._modules.pop(by_name, None)
            if built is None or not setup.again:
                built = build_module(self.answer, setup, by_name)
            self._modules[by_name] = built
            if setup.again or setup.evaluating:
                built.train(not setup.evaluating)
            target = built
        return probed(target, question.probe)

    def _unrecorded(self, question: Question) -> Outcome | None:
        """What the module gives when no gradient is recorded; None where there is none to call."""
        module = self._modules.get(False)
        if question.setup is None or question.probe or module is None:
            return None
        module.train(not question.setup.evaluating)
        inputs = fresh_copies(question.inputs())
        with torch.no_grad():
            outcome, _ = self._call(lambda: module(*inputs.values()), watching=False)
        return outcome

    def _parameters(self, question: Question) -> dict[str, Any]:
        module = self._modules.get(False, self.answer)
        if not isinstance(module, nn.Module):
            return {"parameters": {}, "frozen": []}
        wanted = question.setup.parameters if question.setup is not None else {}
        named = named_parameters(module, wanted)
        return {
            "parameters": {name: shape_of(value) for name, value in named.items()},
            "frozen": [name for name, value in named.items() if not value.requires_grad],
        }

    def _changed_parameters(self, question: Question) -> list[str]:
        module = self._modules.get(False)
        if question.setup is None or question.setup.moved != 1 or module is None:
            return []
        loaded, named = question.setup.parameters, named_parameters(module)
        times = Counter(id(named[name]) for name in loaded if name in named)
        return [
            name
            for name, value in named.items()
            if times[id(value)] == 1  # of a shared one only the last values can be there
            and shape_of(value) == shape_of(loaded.get(name))
            and not same_entries(value, loaded[name].to(value.dtype))
        ]

    def _may_be_our_fault(self, raised: Raised | None) -> bool:
        """Whether to call once more without watching, which must never fail a right answer."""
        self._watching = raised is None or bool(self._seen) or self.clock.left() <= 0
        return not self._watching

    def _trace(
        self, question: Question, given: dict[str, Any]
    ) -> tuple[Outcome, dict[str, Tensor | None], Raised | None]:
        """The same call by name, recorded for gradients, and the gradients."""
        leaves = {
            name: value.clone().requires_grad_()
            for name, value in given.items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }
        loaded = question.setup.parameters if question.setup is not None else {}
        # Not the leaves themselves: in-place work on a leaf is an error of its own.
        gradients: dict[str, Tensor | None] = dict.fromkeys([*leaves, *loaded])
        with torch.inference_mode(False), torch.enable_grad():
            copies = {name: leaf.clone() for name, leaf in leaves.items()}
            inputs = {**fresh_copies(given), **copies}
            traced, returned = self._call(lambda: self._target(question, by_name=True)(**inputs))
            if traced.raised is not None and self.clock.left() > 0:
                # Where the same call works without gradients, it is they that cannot be had.
                unrecorded = fresh_copies(given)
                named, _ = self._call(lambda: self._target(question, by_name=True)(**unrecorded))
                if named.raised is None:
                    return named, gradients, traced.raised
            if True in self._modules:
                found_here = named_parameters(self._modules[True])
                leaves |= {
                    name: found_here[name]
                    for name in loaded
                    if name in found_here and found_here[name].requires_grad
                }
            pulled = [
                (output, cotangent.to(output.dtype))
                for output, cotangent in zip(
                    tensors_in(returned), question.cotangents, strict=False
                )
                if cotangent is not None
                and output.requires_grad
                and output.shape == cotangent.shape
            ]
            if not pulled:
                return traced, gradients, None
            outcome, found = self._call(
                lambda: torch.autograd.grad(
                    [output for output, _ in pulled],
                    list(leaves.values()),
                    [cotangent for _, cotangent in pulled],
                    allow_unused=True,
                ),
                watching=False,
            )
        if found is None:
            return traced, gradients, outcome.raised
        gradients |= dict(zip(leaves, map(_copied, found), strict=True))
        return traced, gradients, None

    @contextlib.contextmanager
    def _watch(self) -> Iterator[None]:
        if not self._watching:
            yield
            return
        with watch(self.banned, operators=not self._tracing) as seen:
            try:
                yield
            finally:
                self._seen += [name for name in seen if name not in self._seen]

    def _call(self, call: Callable[[], Any], watching: bool = True) -> tuple[Outcome, Any]:
        """What `call` gave, as data and as it is (None where it raised)."""
        try:
            with time_limit(self.clock), silence():
                with self._watch() if watching else contextlib.nullcontext():
                    returned = call()
                returned = as_plain(returned)
                outcome = as_outcome(returned)
        except TimeLimitReached:
            outcome = Outcome("raised", raised=Raised(TIME_LIMIT))
        except NoModule as error:
            outcome, returned = Outcome(str(error)), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome = Outcome("raised", raised=describe(error, self.answer))
        if self.clock.left() < 0:  # also where the answer swallowed the exception
            outcome = Outcome("raised", raised=Raised(TIME_LIMIT))
        return outcome, None if outcome.raised else returned


def probed(target: Callable[..., Any], probe: str) -> Callable[..., Any]:
    """`target`, called in the roundabout way of that name, if there is one."""
    return PROBES[probe](target) if probe else target


def _is_same(quiet: Outcome, plain: Outcome) -> bool:
    """Whether two calls of a module agree; what was stopped or raised is told elsewhere."""
    if plain.raised is not None or (quiet.raised and quiet.raised.type == TIME_LIMIT):
        return True
    return len(quiet.values) == len(plain.values) and all(
        now.shape == then.shape and torch.allclose(now, then, equal_nan=True)
        for now, then in zip(quiet.values, plain.values, strict=True)
    )


def build_module(
    answer: Callable[..., Any], setup: Setup, by_name: bool = False, in_double: bool = False
) -> nn.Module:
    """A module as `setup` says. Parameters of other names or shapes stay as they are built."""
    values = fresh_copies(setup.arguments)
    module = answer(**values) if by_name else answer(*values.values())
    if not isinstance(module, nn.Module):
        raise NoModule(f"{_type_name(module)}, {NO_MODULE}")
    if in_double:
        module = module.double()
    with torch.no_grad():
        for name, parameter in named_parameters(module).items():
            if shape_of(parameter) == shape_of(setup.parameters.get(name)):
                parameter.copy_(setup.parameters[name])
    if setup.moved != 1:
        module._apply(lambda tensor: tensor * setup.moved if tensor.is_floating_point() else tensor)
    return module


def named_parameters(
    module: nn.Module, wanted: dict[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """All of them; one that is shared appears under each of its names. A further name of a
    parameter that is `wanted` is left out: it is no parameter more."""
    # The class's own method: a module may have one that hides some.
    found = dict(nn.Module.named_parameters(module, remove_duplicate=False))
    known = {id(found[name]) for name in wanted or {} if name in found}
    return {
        name: value
        for name, value in found.items()
        if name in (wanted or {}) or id(value) not in known
    }


def shape_of(tensor: Tensor | None) -> list[int] | None:
    """None for no tensor, and for a parameter that waits for its first input (a lazy one)."""
    if tensor is None or isinstance(tensor, UninitializedParameter):
        return None
    return list(tensor.shape)


def as_plain(returned: Any) -> Any:
    """The same with plain tensors for tensors of a subclass, whose methods are not ours to trust.

    A sequence is gone through once, so that what is compared and what is differentiated are one.
    """
    if isinstance(returned, tuple | list):
        items = [as_plain(item) if isinstance(item, Tensor) else item for item in returned]
        return items if isinstance(returned, list) else tuple(items)
    if isinstance(returned, Tensor) and type(returned) is not Tensor and not _is_odd(returned):
        with torch._C.DisableTorchFunctionSubclass():
            return returned.as_subclass(Tensor)
    return returned


def as_outcome(returned: Any) -> Outcome:
    """What an answer returned, as data; tensors are copied."""
    sequence = isinstance(returned, tuple | list)
    found = tensors_in(returned)
    if not found or (sequence and len(found) != len(returned)):
        return Outcome(_type_name(returned))
    for tensor in found:
        if _is_odd(tensor):
            return Outcome(f"{tensor.dtype} {type(tensor).__name__} ({tensor.layout})")
        if tensor.numel() > _MOST_ENTRIES:
            return Outcome(f"a tensor of {tensor.numel()} entries, shape {tuple(tensor.shape)}")
    return Outcome("sequence" if sequence else "tensor", [_copy(tensor) for tensor in found])


def tensors_in(returned: Any) -> list[Tensor]:
    if isinstance(returned, Tensor):
        return [returned]
    if isinstance(returned, tuple | list):
        return [item for item in returned if isinstance(item, Tensor)]
    return []


def fresh_copies(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.clone(memory_format=torch.preserve_format)
        if isinstance(value, Tensor)
        else value
        for name, value in arguments.items()
    }


def changed_inputs(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of the tensors whose values, shape or strides are not what they were."""
    return [
        name
        for name, value in before.items()
        if isinstance(value, Tensor)
        and (value.stride() != after[name].stride() or not same_entries(value, after[name]))
    ]


def same_entries(left: Tensor, right: Tensor) -> bool:
    """Equal in shape, dtype and every entry; NaN equals NaN."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    left, right = left.detach(), right.detach()
    return torch.equal(left, right) or bool(
        ((left == right) | ((left != left) & (right != right))).all()
    )


def describe(error: BaseException, answer: Any = None) -> Raised:
    """An exception in the student's terms: their own line, not one of ours or of a library."""
    frames = [
        (frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _is_own(frame)
    ]
    type_name, text = type(error).__name__, _text_of(error)
    is_value_error = isinstance(error, ValueError)
    if isinstance(error, SyntaxError) and error.text:
        return Raised(type_name, text, error.text.strip()[:_LONGEST_TEXT], f"line {error.lineno}")
    if not frames:
        return Raised(type_name, text, is_value_error=is_value_error)
    frame, number = frames[-1]
    line = linecache.getline(frame.f_code.co_filename, number).strip()[:_LONGEST_TEXT]
    is_stub = (
        isinstance(error, NotImplementedError)
        and frame.f_code in _codes_of(answer)
        and _was_raised_in(frame, error.__traceback__)
    )
    return Raised(
        type_name, text, line, f"line {number} of {_name_of_code(frame)}", is_stub, is_value_error
    )


def _text_of(error: BaseException) -> str:
    try:
        return sound_text(str(error).strip()[:_LONGEST_TEXT])
    except Exception:  # a student's own exception may fail to tell itself
        return ""


def _was_raised_in(frame: FrameType, trace: TracebackType | None) -> bool:
    """Whether a `raise` there ended it: torch raises NotImplementedError as well, from C++ too."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame is not frame:
        return False
    operation = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return dis.opname[operation].startswith("RAISE_VARARGS")


def _codes_of(answer: Any) -> list[Any]:
    """The code of a function, or of all methods of a class."""
    functions = vars(answer).values() if isinstance(answer, type) else [answer]
    return [function.__code__ for function in functions if hasattr(function, "__code__")]


def _is_own(frame: FrameType) -> bool:
    return not frame.f_code.co_filename.startswith(_NOT_THE_STUDENTS)


def _name_of_code(frame: FrameType) -> str:
    name = frame.f_code.co_qualname.replace("<locals>.", "")
    return "the cell" if name == "<module>" else name


def _is_odd(tensor: Tensor) -> bool:
    """Whether it is no plain array of numbers: sparse, complex, fake, a wrapper around others."""
    with torch._C.DisableTorchFunctionSubclass():
        return (
            type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__
            or tensor.layout != torch.strided
            or tensor.device.type != "cpu"
            or tensor.dtype not in DTYPE_NAMES
        )


def _type_name(value: Any) -> str:
    if isinstance(value, tuple | list) and value:
        return f"{type(value).__name__} of {', '.join(type(item).__name__ for item in value[:4])}"
    return "None" if value is None else type(value).__name__


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().resolve_neg().clone()


def _copied(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else _copy(gradient)


class Clock:
    """Counts seconds of work: of this thread's own time, or, for what only waits, a share of the
    time that passes. A right answer is not stopped because others keep the machine busy."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._started, self._worked = time.monotonic(), time.thread_time()

    def left(self) -> float:
        passed = time.monotonic() - self._started
        if passed < self.seconds:
            return self.seconds - passed  # it has not worked for longer than that
        return self.seconds - max(time.thread_time() - self._worked, passed / PATIENCE)


@contextlib.contextmanager
def time_limit(clock: Clock) -> Iterator[None]:
    """TimeLimitReached in the block when time is over; only the main thread can be stopped so."""
    alarm = getattr(signal, "SIGALRM", None)
    if alarm is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if clock.left() > 0:
            return
        # Code with a bare `except` swallows what is raised here, so it is raised again at the
        # next line, which is the handler's own: from there it gets out of the loop around.
        sys.settrace(stop_again)
        while frame is not None and frame.f_code.co_filename != __file__:
            traced.append((frame, frame.f_trace))
            frame.f_trace = stop_again
            frame = frame.f_back
        raise TimeLimitReached

    def stop_again(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and _is_own(frame):
            raise TimeLimitReached
        return stop_again

    traced: list[tuple[FrameType, Any]] = []
    tracing = sys.gettrace()
    before = signal.signal(alarm, stop)
    # It repeats, for a machine that is busy, and for code that swallows that as well.
    signal.setitimer(signal.ITIMER_REAL, max(clock.left(), 0.001), 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(alarm, before)
        sys.settrace(tracing)
        for frame, trace in reversed(traced):
            frame.f_trace = trace


@contextlib.contextmanager
def kept_modes() -> Iterator[None]:
    """What an answer sets for all of torch is as before when it is over, and no random number is
    drawn from those that come after it."""
    dtype, recording = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(recording)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield


assert sys.version_info >= (3, 11), "this course needs Python 3.11 or newer"
