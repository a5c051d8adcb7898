"""The checks of this course's notebooks, in one file. Generated: do not edit.

A notebook imports it where the package `autograder` is not installed. It needs torch alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Callable, Iterator
from collections.abc import Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from dataclasses import dataclass, field, fields, is_dataclass
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from torch import Tensor
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from types import FrameType, TracebackType
from typing import Any
import contextlib
import ctypes
import dis
import io
import json
import linecache
import math
import os
import re
import signal
import socket
import sys
import sysconfig
import textwrap
import threading
import time
import torch
import traceback


# --- tensors --------------------------------------------------------------------------------------

DTYPES = {
    "F32": torch.float32,
    "F64": torch.float64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_Key = tuple[str, tuple[int, ...], bytes]  # dtype, shape, entries
_PLACE = "$tensor"
_MAX_HEADER = 64 * 2**20
_LARGEST_SIZE = 2**40
_MOST_DIMENSIONS = 64


class MalformedData(ValueError):
    """Bytes that are not a value written by `pack`."""


def pack(value: Any) -> bytes:
    """Bytes of `value`: dicts with string keys, lists, strings, numbers, None and dense tensors."""
    tensors: dict[_Key, int] = {}
    structure = json.dumps(_lift_out(value, tensors), separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"structure": structure}}
    chunks, offset = [], 0
    for (dtype, shape, raw), index in tensors.items():
        offsets = [offset, offset + len(raw)]
        header[str(index)] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format asks for tensors that start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + b"".join(chunks)


def unpack(data: bytes) -> Any:
    """The value that `pack` wrote; MalformedData for anything else."""
    try:
        return _unpack(data)
    except MalformedData:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise MalformedData(f"not a packed value ({error})") from error


def _unpack(data: bytes) -> Any:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MAX_HEADER):
        raise MalformedData("the header is longer than the data")
    header = json.loads(data[8 : 8 + length].decode())
    body = memoryview(data)[8 + length :]
    structure = json.loads(header.pop("__metadata__")["structure"])
    tensors = {name: _read_tensor(entry, body) for name, entry in header.items()}
    return _put_back(structure, tensors)


def _read_tensor(entry: dict[str, Any], body: memoryview) -> Tensor:
    dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
    start, end = entry["data_offsets"]
    if not all(type(n) is int and 0 <= n <= _LARGEST_SIZE for n in [*shape, start, end]):
        raise MalformedData("a shape or an offset is not a natural number, or too large")
    if len(shape) > _MOST_DIMENSIONS:
        raise MalformedData("a tensor has too many dimensions")
    if not start <= end <= len(body) or end - start != math.prod(shape) * dtype.itemsize:
        raise MalformedData("a tensor's size does not match its shape")
    if start == end:
        return torch.zeros(0, dtype=dtype).reshape(shape)
    return torch.frombuffer(bytearray(body[start:end]), dtype=dtype).reshape(shape)


def tensor_bytes(tensor: Tensor) -> bytes:
    """The tensor's entries in row-major order, bit for bit."""
    plain = tensor.detach().cpu().contiguous()
    if plain.numel() == 0:
        return b""
    return ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size())


def _lift_out(value: Any, tensors: dict[_Key, int]) -> Any:
    """The structure, with each tensor's number in its place; equal tensors are kept once."""
    if isinstance(value, Tensor):
        key = (DTYPE_NAMES[value.dtype], tuple(value.shape), tensor_bytes(value))
        return {_PLACE: tensors.setdefault(key, len(tensors))}
    if isinstance(value, dict):
        return {key: _lift_out(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lift_out(item, tensors) for item in value]
    return value


def _put_back(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_PLACE}:
            return tensors[str(value[_PLACE])]
        return {key: _put_back(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    return value


# --- cases ----------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Setup:
    """How the module comes about that is called.

    It is built with `arguments`, and `parameters` are loaded into it by name. With `again` the
    module of the question before is taken as it is, if there is one. All that `.to()` would move
    is multiplied by `moved`: on one device this is how a move can be seen.
    """

    arguments: dict[str, Any]
    parameters: dict[str, Tensor] = field(default_factory=dict)
    again: bool = False
    evaluating: bool = False  # in eval mode, not as built
    moved: float = 1.0


@dataclass(frozen=True)
class Question:
    """One call to make: arguments by name in the signature's order, and how to pull back on it.

    `cotangents` holds, for each output, the gradient to send back through it (None: none).
    With `setup` the answer is a class, and a module of it is called. `probe` names one of
    `probes.PROBES`, by which the answer is called in a roundabout way. `layout` has, for tensors
    that are not contiguous, the order of their dimensions in memory.
    """

    arguments: dict[str, Any]
    cotangents: list[Tensor | None] = field(default_factory=list)
    setup: Setup | None = None
    probe: str = ""
    layout: dict[str, list[int]] = field(default_factory=dict)

    def inputs(self) -> dict[str, Any]:
        """The arguments, laid out in memory as they should be."""
        return self.arguments | {
            name: laid_out(self.arguments[name], order) for name, order in self.layout.items()
        }


def laid_out(tensor: Tensor, order: list[int]) -> Tensor:
    """The same entries with dimensions in memory in this order, outermost first."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


@dataclass(frozen=True)
class Raised:
    """An exception that came out of an answer, told in the student's own terms."""

    type: str
    message: str = ""
    line: str = ""  # the student's source line
    where: str = ""  # "line 3 of attention"
    is_stub: bool = False  # the answer's own `raise NotImplementedError`
    is_value_error: bool = False  # or of a class derived from it


UNCLEAR = "unclear"  # the kind of an outcome that rounding decides


@dataclass(frozen=True)
class Outcome:
    """What one call gave: one tensor, a sequence of tensors, something else, or an exception.

    `kind` is "tensor", "sequence", "raised", or the name of the type that came instead.
    """

    kind: str
    values: list[Tensor] = field(default_factory=list)
    raised: Raised | None = None


@dataclass(frozen=True)
class Response:
    """All that an answer gave on one question.

    `plain` is a call by position on inputs that need no gradient, `traced` one by name on inputs
    that do. `gradients` has one entry for each floating-point argument and each parameter, None
    where the outputs do not depend on it. `parameters` are the shapes of the module's parameters,
    `frozen` those that cannot be trained. `unrepeatable`: a second call gave something else.
    """

    plain: Outcome
    traced: Outcome
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    gradient_error: Raised | None = None
    changed_inputs: list[str] = field(default_factory=list)
    changed_results: bool = False
    banned: list[str] = field(default_factory=list)
    parameters: dict[str, list[int]] = field(default_factory=dict)
    frozen: list[str] = field(default_factory=list)
    unrepeatable: bool = False


@dataclass(frozen=True)
class Case:
    """A question with all that is needed to judge the response to it.

    `outputs` names what is returned, in order. `leading` is the number of leading dimensions,
    `traits` are the names of what is special here. `exact` marks for each output the entries that
    must match exactly (None: none), `exact_gradients` does so for gradients, `free_gradients`
    marks those that may be anything. `misconceptions` has for each diagnosis the outcomes of its
    variants; it is empty where no mistake is to be told by this case.
    """

    name: str
    question: Question
    expected: Outcome
    gradients: dict[str, Tensor]
    outputs: list[str]
    leading: int
    traits: list[str] = field(default_factory=list)
    exact: list[Tensor | None] = field(default_factory=list)
    exact_gradients: dict[str, Tensor] = field(default_factory=dict)
    free_gradients: dict[str, Tensor] = field(default_factory=dict)
    misconceptions: dict[str, list[Outcome]] = field(default_factory=dict)


@dataclass(frozen=True)
class Spec:
    """What the judge knows of an exercise besides its cases.

    `distributions` are the outputs whose rows sum to 1; `axes` names the last dimensions of an
    output. `banned` names groups of `bans.GROUPS`. `diagnoses` holds a sentence for each slug;
    `trait_diagnoses` the slug for an answer that fails on cases with that trait alone; `renamed`
    what a generic diagnosis is called here. `builds_on` are exercises of the same notebook that an
    answer may call. `time_limit` is in seconds, for all cases together. Where `accuracy` is not 0,
    that share of the rows of the first output must be right as a whole, and no more is asked.
    """

    id: str
    points: float
    distributions: list[str]
    axes: dict[str, list[str]]
    banned: list[str]
    builds_on: list[str]
    diagnoses: dict[str, str]
    trait_diagnoses: dict[str, str]
    renamed: dict[str, str]
    time_limit: float
    accuracy: float


@dataclass(frozen=True)
class CaseSet:
    """The exercises of a topic and their cases, in order, as one file holds them."""

    topic: str
    seed: int
    specs: dict[str, Spec]
    cases: dict[str, list[Case]]

    def only(self, exercises: Iterable[str]) -> CaseSet:
        """The same without the other exercises."""
        kept = list(exercises)
        return CaseSet(
            self.topic,
            self.seed,
            {name: self.specs[name] for name in kept},
            {name: self.cases[name] for name in kept},
        )

    def joined_with(self, other: CaseSet) -> CaseSet:
        """The cases of both, for the same topic; the seed is the other's."""
        both = {name: self.cases[name] + other.cases[name] for name in self.specs}
        return CaseSet(self.topic, other.seed, self.specs, both)

    def to_bytes(self) -> bytes:
        return pack(to_data(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> CaseSet:
        """Read a case file; MalformedData where it is none."""
        raw = unpack(data)
        try:
            specs = {name: Spec(**entry) for name, entry in raw["specs"].items()}
            cases = {name: [_case(entry) for entry in raw["cases"][name]] for name in specs}
            return cls(raw["topic"], raw["seed"], specs, cases)
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedData(f"not a case file ({error})") from error


def to_data(value: Any) -> Any:
    """Dataclasses as dicts, all the way down; tensors stay."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_data(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, dict):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    return value


def parse_question(data: Any) -> Question:
    try:
        setup = data["setup"] and Setup(**data["setup"])
        return Question(**{**data, "setup": setup})
    except (TypeError, KeyError) as error:
        raise MalformedData(f"not a question ({error})") from error


def parse_response(data: Any) -> Response:
    """A response that came over the wire, every field checked: its sender may be hostile."""
    known = {item.name for item in fields(Response)}
    _require(isinstance(data, dict) and set(data) == known, "a response has exactly its fields")
    gradients, changed, banned = data["gradients"], data["changed_inputs"], data["banned"]
    _require(isinstance(gradients, dict), "gradients are named")
    _require(
        all(grad is None or isinstance(grad, Tensor) for grad in gradients.values()),
        "a gradient is a tensor or none",
    )
    for names in (changed, banned, data["frozen"]):
        _require(
            isinstance(names, list) and all(_is_name(name) for name in names),
            "names are short strings",
        )
    for flag in ("changed_results", "unrepeatable"):
        _require(isinstance(data[flag], bool), "a flag is true or false")
    shapes = data["parameters"]
    _require(
        isinstance(shapes, dict)
        and all(_is_name(name) and _is_shape(shape) for name, shape in shapes.items()),
        "parameters have names and shapes",
    )
    return Response(
        plain=_outcome(data["plain"]),
        traced=_outcome(data["traced"]),
        gradients=gradients,
        gradient_error=_raised(data["gradient_error"]),
        changed_inputs=changed,
        changed_results=data["changed_results"],
        banned=banned,
        parameters=shapes,
        frozen=data["frozen"],
        unrepeatable=data["unrepeatable"],
    )


LONGEST_NAME, LONGEST_TEXT = 200, 2000  # letters, of what comes over the wire


def _is_name(value: Any) -> bool:
    """Short, and such as can be written."""
    return isinstance(value, str) and len(value) <= LONGEST_NAME and sound_text(value) == value


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int for size in value)


def _case(data: dict[str, Any]) -> Case:
    misconceptions = {
        slug: [_outcome(entry) for entry in variants]
        for slug, variants in data["misconceptions"].items()
    }
    parsed = {
        "question": parse_question(data["question"]),
        "expected": _outcome(data["expected"]),
        "misconceptions": misconceptions,
    }
    return Case(**{**data, **parsed})


def _outcome(data: Any) -> Outcome:
    _require(isinstance(data, dict) and set(data) == {"kind", "values", "raised"}, "an outcome")
    kind, values = data["kind"], data["values"]
    _require(_is_name(kind), "an outcome's kind is a short string")
    _require(
        isinstance(values, list) and all(isinstance(value, Tensor) for value in values),
        "an outcome's values are tensors",
    )
    raised = _raised(data["raised"])
    _require((kind == "raised") == (raised is not None), "an exception comes with its kind")
    _require(kind != "tensor" or len(values) == 1, "one tensor is one tensor")
    return Outcome(kind, values, raised)


def _raised(data: Any) -> Raised | None:
    if data is None:
        return None
    known = {item.name for item in fields(Raised)}
    _require(isinstance(data, dict) and set(data) == known, "an exception has exactly its fields")
    texts = [data[name] for name in ("type", "message", "line", "where")]
    _require(all(isinstance(text, str) for text in texts), "an exception's texts are strings")
    for flag in ("is_stub", "is_value_error"):
        _require(isinstance(data[flag], bool), "a flag is true or false")
    kind, message, line, where = (sound_text(text[:LONGEST_TEXT]) for text in texts)
    kind = kind[:LONGEST_NAME]
    return Raised(kind, message, line, where, data["is_stub"], data["is_value_error"])


def sound_text(text: str) -> str:
    """The same without half surrogate pairs, which cannot be written."""
    return text.encode("utf-8", "replace").decode()


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise MalformedData(f"malformed: {what}")


# --- bans -----------------------------------------------------------------------------------------

def _is_softmax(name: str) -> bool:
    return "softmax" in name or "softmin" in name or name in ("logsumexp", "special_logsumexp")


def _is_attention(name: str) -> bool:
    ready_made = ("scaled_dot_product", "multi_head_attention", "transformer_encoder_layer")
    return any(part in name for part in ready_made) or name in _FUSED


_FUSED = (
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "_cudnn_attention_forward",
    "flex_attention",
    "_triton_multi_head_attention",
)


def _is_norm(name: str) -> bool:
    """Of whatever kind or backend; not a vector's norm, `normalize` or `var_mean`."""
    return any(f"{kind}_norm" in name for kind in ("layer", "batch", "group", "instance", "rms"))


GROUPS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "softmax": ("a ready-made softmax", _is_softmax),
    "attention": ("a ready-made attention", _is_attention),
    "norm": ("a ready-made norm", _is_norm),
}


@contextmanager
def watch(groups: list[str], operators: bool = True) -> Iterator[list[str]]:
    """Within it, the list that it gives collects the names of banned calls, each once.

    Without `operators`, which cost the most to watch, Python functions alone are seen.
    """
    seen: list[str] = []
    known: set[str] = set()

    def note(name: str) -> None:
        if name not in known:
            known.add(name)
            if any(GROUPS[group][1](name) for group in groups):
                seen.append(name)

    run_thread = threading.Thread.run

    def run_watched(thread: threading.Thread) -> None:  # modes hold for one thread alone
        with _Functions(note), _Operators(note) if operators else nullcontext():
            run_thread(thread)

    with _Functions(note), _Operators(note) if operators else nullcontext():
        threading.Thread.run = run_watched  # type: ignore[method-assign, assignment]
        try:
            yield seen
        finally:
            threading.Thread.run = run_thread  # type: ignore[method-assign]


def warm_up() -> None:
    """Let torch import what watching needs, a second's worth, before any answer is timed."""
    with watch([]):
        torch.ones(1).exp()


class _Functions(TorchFunctionMode):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.note(_name_of(func))
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    supports_higher_order_operators = True  # such as flex_attention

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.note(_name_of(func))
        return func(*args, **(kwargs or {}))


def _name_of(func: Any) -> str:
    """`softmax` for torch.softmax, F.softmax, Tensor.softmax, torch.ops.aten.softmax.int alike."""
    packet = getattr(func, "overloadpacket", func)
    return str(getattr(packet, "__name__", packet)).rpartition(".")[2]


# --- probes ---------------------------------------------------------------------------------------

def only_building(module: nn.Module) -> Callable[[], None]:
    """That it could be built is all there is to see."""
    return lambda: None


def longest_input(module: nn.Module) -> Callable[[], Tensor]:
    """The module's `max_len`."""
    return lambda: torch.tensor(module.max_len)


def sums(answer: Callable[..., Tensor]) -> Callable[..., Any]:
    """The sums over columns and over rows of a matrix that is too large to be sent.

    -> (columns,) and (rows,), int64 where the matrix holds booleans; what came, where it is none.
    """

    def add(*given: Any, **named: Any) -> Any:
        matrix = answer(*given, **named)
        if not isinstance(matrix, Tensor) or matrix.ndim < 2:
            return matrix
        return matrix.sum(-2), matrix.sum(-1)

    return add


def change_of_the_past(module: nn.Module) -> Callable[..., Any]:
    """How outputs at the first `kept` positions differ between `x` and `other`.

    Shapes: x and other (..., seq, d_model), the same at the first `kept` positions
    -> (..., kept, d_model), exactly 0 throughout where no output depends on later positions.
    """

    def change(x: Tensor, other: Tensor, kept: int) -> Any:
        first, second = module(x), module(other)
        if not isinstance(first, Tensor) or not isinstance(second, Tensor):
            return first
        return first[..., :kept, :] - second[..., :kept, :]

    return change


class NextTokenModel(nn.Module):
    """A causal model as simple as can be, on which training and generating are tried.

    The logits at a position are linear in the embedding there and in the sum of all up to there
    (if not `causal`, of all: then what is padded behind the last token shows in its logits).
    Shapes: tokens (batch, seq) -> logits (batch, seq, vocab); ValueError beyond `max_len`.
    """

    def __init__(
        self, embed: Tensor, now: Tensor, past: Tensor, max_len: int, causal: bool = True
    ) -> None:
        super().__init__()
        self.causal = causal
        self.embed = nn.Parameter(embed.detach().clone())  # (vocab, d)
        self.now = nn.Parameter(now.detach().clone())  # (d, vocab)
        self.past = nn.Parameter(past.detach().clone())  # (d, vocab)
        self.inner = nn.Identity()  # has a mode of its own
        self.max_len = max_len
        self.recorded = False  # whether a gradient could be had from some logits

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[-1] > self.max_len:
            raise ValueError(
                f"{tokens.shape[-1]} tokens, but the model reads at most {self.max_len}"
            )
        x = self.inner(self.embed[tokens])  # (batch, seq, d)
        read = x.cumsum(dim=-2) if self.causal else x.sum(dim=-2, keepdim=True).expand_as(x)
        logits: Tensor = x @ self.now + read @ self.past  # (batch, seq, vocab)
        self.recorded |= logits.requires_grad
        return logits


def training(step: Callable[..., Any]) -> Callable[..., Any]:
    """Several steps of training, one for each batch of `batches` (steps, batch, seq).

    `stale`: gradients from elsewhere are there before each step. -> the losses (steps,) and the
    parameters after the last step; what `step` gave, where that is no number.
    """

    def train(
        embed: Tensor,
        now: Tensor,
        past: Tensor,
        batches: Tensor,
        optimizer: str,
        settings: dict[str, float],
        stale: bool,
    ) -> Any:
        model = NextTokenModel(embed, now, past, batches.shape[-1])
        optimizers = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}
        descent = optimizers[optimizer](model.parameters(), **settings)
        losses = []
        for number, tokens in enumerate(batches):
            if stale:
                for parameter in model.parameters():
                    parameter.grad = torch.ones_like(parameter)
            if number % 2:
                loss = step(model=model, optimizer=descent, tokens=tokens)
            else:
                loss = step(model, descent, tokens)
            if not isinstance(loss, float):
                return loss
            losses.append(loss)
        return (torch.tensor(losses, dtype=embed.dtype), *model.parameters())

    return train


def generation(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Generating from `prompt` (batch, t), and what it left behind.

    -> (batch, t + n_new), and as single booleans: whether a gradient was recorded, the model's
    mode is as before, whether parameters and their requires_grad are as before, torch's mode.
    """

    def run(
        embed: Tensor,
        now: Tensor,
        past: Tensor,
        max_len: int,
        prompt: Tensor,
        n_new: int,
        in_training: bool,
        recording: bool,
    ) -> Any:
        model = NextTokenModel(embed, now, past, max_len, causal=False).train(in_training)
        model.embed.requires_grad_(in_training)  # not all parameters need be trained
        with torch.set_grad_enabled(recording):
            if n_new % 2:
                result = generate(model, prompt, n_new)
            else:
                result = generate(model=model, prompt=prompt, n_new=n_new)
            still_recording = torch.is_grad_enabled()
        if not isinstance(result, Tensor):
            return result
        kept = zip((model.embed, model.now, model.past), (embed, now, past), strict=True)
        trainable = [parameter.requires_grad for parameter in model.parameters()]
        flags = [
            model.recorded,
            all(part.training == in_training for part in model.modules()),
            all(torch.equal(parameter, before) for parameter, before in kept),
            trainable == [in_training, True, True],
            still_recording,
        ]
        return (result, *map(torch.tensor, flags))

    return run


def predictions(model: nn.Module) -> Callable[[Tensor, Tensor], Any]:
    """What a trained model says next, having read each prompt and the right answer so far.

    Shapes: prompts (batch, t), answers (batch, n) -> (batch, n) int64, and all parameters. A causal
    model generates an answer rightly just where all of these are right.
    """

    def predict(prompts: Tensor, answers: Tensor) -> Any:
        said = []
        with torch.no_grad():
            for count in range(answers.shape[-1]):
                read = torch.cat([prompts, answers[:, :count]], dim=-1)
                said.append(model(read)[:, -1].argmax(-1))
        return (torch.stack(said, dim=-1), *model.parameters())

    return predict


UNWATCHED = ("sums",)  # more operations than there is time to watch

PROBES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "only-building": only_building,
    "longest-input": longest_input,
    "sums": sums,
    "change-of-the-past": change_of_the_past,
    "training": training,
    "generation": generation,
    "predictions": predictions,
}


# --- evaluation -----------------------------------------------------------------------------------

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


# --- verdicts -------------------------------------------------------------------------------------

PASSED, FAILED, MISSING = "passed", "failed", "missing"

# What can go wrong in any exercise; each exercise adds its own misconceptions to these.
GENERIC_DIAGNOSES = {
    "not-implemented": "There is no answer yet: fill in the body and remove the line that raises "
    "NotImplementedError.",
    "raised": "Your code raised an exception.",
    "wrong-type": "What came back is not of the type asked for. (Where it is None, a return is "
    "missing; where it is one tensor of two, `return output, weights` gives both.)",
    "wrong-shape": "The shape of the result is not the one asked for. Write the shape of every "
    "intermediate tensor beside its line and find where the two part.",
    "wrong-dtype": "The values are right, but their dtype is not: the result should have the "
    "dtype asked for.",
    "nan": "The result holds NaN where it should hold numbers. Look for inf - inf, inf / inf, "
    "0 / 0 or 0 * inf.",
    "input-changed": "Your code changes its own input. The caller still needs it: make a new "
    "tensor instead of working in place (no `-=`, no `x[...] = ...`, no method that ends in `_`).",
    "result-changed": "What an earlier call returned changed when the function was called again: "
    "it must not hand out a buffer that it uses again.",
    "no-gradient": "The values are right, the gradients are not: something cuts the graph or goes "
    "round it. Look for .detach(), .item(), .data, no_grad, NumPy, or a tensor built anew from "
    "numbers.",
    "wrong-parameters": "The names or the shapes of the module's parameters are not the ones "
    "asked for. Parameters are named after the attributes that hold them: "
    "`self.qkv = nn.Linear(...)` makes `qkv.weight` and `qkv.bias`. (Where all are missing, "
    "`super().__init__()` or the assignment to self may be.)",
    "unrepeatable": "The same module gives something else when it is called once more with the "
    "same input. Look for dropout, for noise, and for what forward keeps or changes in self.",
    "banned-call": "This exercise is to be built by hand, and your code calls a ready-made "
    "function for it.",
    "too-slow": "Your code did not finish in time. Look for a loop that never ends, or one over "
    "single numbers where a tensor operation would do.",
    "no-batch": "Your code is right for one number of leading dimensions only. Count dimensions "
    "from the end (-1, -2), so that any number of them may stand in front: "
    "`k.transpose(-2, -1)`, not `k.T`; `'...td,...sd->...ts'` in an einsum.",
    "no-value-error": "Sizes that cannot work should raise a ValueError, and did not.",
}


@dataclass(frozen=True)
class Verdict:
    """The judgement of one exercise.

    `status` is passed, failed or missing; `diagnosis` a slug or None; `message` tells the student
    what was expected, what came, at which index, and what to look at next.
    """

    exercise: str
    status: str
    points: float
    max_points: float
    diagnosis: str | None
    message: str

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Verdict:
        return cls(**data)


def points_text(points: float) -> str:
    """`3` for 3.0, `2.5` for 2.5."""
    return f"{points:g}"


def not_defined(exercise: str, max_points: float) -> Verdict:
    """The verdict where no answer was given at all."""
    message = f"`{exercise}` is not defined. " + GENERIC_DIAGNOSES["not-implemented"]
    return Verdict(exercise, MISSING, 0.0, max_points, "not-implemented", message)


_OWN_FAULTS = ("wrong-parameters", "banned-call")  # never a building block's


def with_faults_below(verdicts: list[Verdict], builds_on: dict[str, list[str]]) -> list[Verdict]:
    """The same verdicts; a failed one says which of its building blocks do not pass either."""
    below = {verdict.exercise: verdict for verdict in verdicts if not verdict.passed}
    return [
        verdict
        if verdict.status != FAILED or verdict.diagnosis in _OWN_FAULTS
        else _pointing_at(
            verdict, [below[name] for name in builds_on[verdict.exercise] if name in below]
        )
        for verdict in verdicts
    ]


def _pointing_at(verdict: Verdict, below: list[Verdict]) -> Verdict:
    unfilled = [item.exercise for item in below if item.status == MISSING]
    failing = [item.exercise for item in below if item.status == FAILED]
    message = verdict.message
    if unfilled and verdict.diagnosis == "raised":
        message += f"\n{_listed(unfilled)} not filled in yet: your code may have called that."
    if failing:
        message += (
            f"\n{_listed(failing, 'does', 'do')} not pass either: where your code calls that, the "
            "fault may lie there."
        )
    return replace(verdict, message=message)


def _listed(names: list[str], one: str = "is", several: str = "are") -> str:
    """`a` is; `a` and `b` are; `a`, `b` and `c` are."""
    quoted = [f"`{name}`" for name in names]
    text = " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return f"{text} {several if len(names) > 1 else one}"


# --- judge ----------------------------------------------------------------------------------------

RTOL, ATOL = 1e-4, 1e-5


@dataclass(frozen=True)
class Finding:
    """What is wrong with one response: a generic diagnosis (or none) and a sentence of detail."""

    diagnosis: str | None
    detail: str


def judge(spec: Spec, cases: list[Case], responses: list[Response]) -> Verdict:
    """The verdict on an exercise from the responses to its cases, in the same order.

    There may be fewer responses than cases: a response after a time limit is not waited for.
    """
    asked = list(zip(cases, responses, strict=False))
    valued = [
        response
        for case, response in asked
        if case.expected.raised is None and case.question.arguments
    ]
    if valued and all(_is_stub(response) for response in valued):
        return _verdict(spec, MISSING, "not-implemented", "")
    banned = [name for response in responses for name in response.banned]
    if banned:
        return _verdict(spec, FAILED, "banned-call", _banned_detail(spec, banned))
    found = findings(spec, cases, responses)
    failing = [index for index, finding in enumerate(found) if finding is not None]
    if not failing:
        if len(responses) < len(cases):
            return _verdict(spec, FAILED, "raised", "The answers stopped before the last case.")
        return _verdict(spec, PASSED, None, "")
    misconception = _misconception(asked, found)
    named = misconception or _pattern(spec, asked, found)
    # A misconception is told by its values, also where the answer raises elsewhere.
    first = _most_telling(found, [None, *_ORDER] if misconception else _ORDER)
    assert first is not None
    named = named or spec.renamed.get(first.diagnosis or "", first.diagnosis)
    detail = f"On {_where(spec, cases[found.index(first)])}: {first.detail}"
    if not misconception:
        detail += what_else_shows(asked, [finding is not None for finding in found])
    return _verdict(spec, FAILED, named, detail)


def findings(spec: Spec, cases: list[Case], responses: list[Response]) -> list[Finding | None]:
    """What is wrong with each response, before a name is looked for that fits them all."""
    return [_find(spec, case, response) for case, response in zip(cases, responses, strict=False)]


def in_time(response: Response) -> bool:
    """False where the answer was stopped: there is no time left for a further question."""
    stopped = [response.plain.raised, response.traced.raised, response.gradient_error]
    return not any(raised and raised.type == TIME_LIMIT for raised in stopped)


# Which finding to show where cases fail in several ways: the earlier one explains the later.
_ORDER: list[str | None] = [
    "too-slow",
    "wrong-parameters",
    "frozen-parameters",
    "raised",
    "wrong-type",
    "wrong-shape",
    "input-changed",
    "nan",
    "unrepeatable",
    None,
    "untrained",
    "wrong-dtype",
    "result-changed",
    "no-gradient",
    "no-value-error",
]


def _most_telling(findings: list[Finding | None], order: list[str | None]) -> Finding | None:
    present = [finding for finding in findings if finding is not None]
    return min(present, key=lambda finding: order.index(finding.diagnosis), default=None)


def _find(spec: Spec, case: Case, response: Response) -> Finding | None:
    """What is wrong with a response, in the order in which a student should hear it."""
    if case.expected.raised is not None:
        return _compare_error(response.plain, spec) or _compare_error(response.traced, spec)
    has_module = response.plain.raised is None and not response.plain.kind.endswith(NO_MODULE)
    if case.question.setup is not None and has_module:
        faults = _parameter_faults(case.question.setup.parameters, response, spec.renamed)
        if faults is not None:
            return faults
    found = _compare(spec, case, response.plain)
    if spec.accuracy:
        return found
    if response.unrepeatable:
        return Finding("unrepeatable", (found.detail if found else "called twice, it differs."))
    if found is None and response.changed_inputs:
        names = ", ".join(f"`{name}`" for name in response.changed_inputs)
        return Finding("input-changed", f"after the call {names} is no longer what it was.")
    if found is None and response.changed_results:
        return Finding("result-changed", "the result of an earlier call is no longer what it was.")
    found = found or _compare(spec, case, response.traced)
    return found or _compare_gradients(spec, case, response)


def _compare_error(outcome: Outcome, spec: Spec) -> Finding | None:
    """Where a ValueError is due: none came, or another exception."""
    raised = outcome.raised
    if raised is None:
        return Finding("no-value-error", "expected a ValueError, none came.")
    if raised.is_value_error:
        return None
    diagnosis, detail = _raised_detail(raised, spec.time_limit)
    if diagnosis == "raised":
        return Finding("no-value-error", f"expected a ValueError, got {detail}")
    return Finding(diagnosis, detail)


def _parameter_faults(
    wanted: dict[str, Tensor], response: Response, renamed: dict[str, str]
) -> Finding | None:
    """How the module's parameters differ from the ones asked for, by name and shape."""
    given = response.parameters
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    misshapen = [
        f"`{name}` has shape {tuple(given[name])}, it should have {tuple(value.shape)}."
        for name, value in wanted.items()
        if name in given and given[name] != list(value.shape)
    ]
    if not (missing or extra or misshapen):
        return None
    only_frozen = not (missing or misshapen) and set(extra) <= set(response.frozen)
    parts = [f"Missing: {_some(missing)}."] if missing else []
    parts += [f"Not asked for: {_some(extra)}."] if extra else []
    frozen = only_frozen and "frozen-parameters" in renamed
    kind = "frozen-parameters" if frozen else "wrong-parameters"
    return Finding(kind, " ".join(parts + misshapen[:2]))


def _some(names: list[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"`{name}`" for name in names[:3]) + more


def _compare(spec: Spec, case: Case, outcome: Outcome) -> Finding | None:
    expected = case.expected
    if outcome.raised is not None:
        return Finding(*_raised_detail(outcome.raised, spec.time_limit))
    if spec.accuracy and outcome.values:
        return _compare_share(spec.accuracy, outcome.values[0], expected.values[0])
    if outcome.kind != expected.kind or len(outcome.values) != len(expected.values):
        wanted = _what_is_wanted(case)
        came = outcome.kind if outcome.kind != "sequence" else f"{len(outcome.values)} tensors"
        came = "a single tensor" if came == "tensor" else came
        return Finding("wrong-type", f"expected {wanted}, got {came}.")
    pairs = list(zip(case.outputs, outcome.values, expected.values, strict=True))
    for name, value, right in pairs:
        if value.shape != right.shape:
            shapes = f"expected shape {tuple(right.shape)}, got {tuple(value.shape)}."
            return Finding("wrong-shape", f"{name}: {shapes}")
    for index, (name, value, right) in enumerate(pairs):
        exact = case.exact[index] if case.exact else None
        wrong = ~close(value, right, exact)
        if bool(wrong.any()) and not _is_right_but_coarse(value, right):
            finding = _value_finding(name, value, right, wrong)
            more = _broken_property(spec, name, value, wrong)
            return replace(finding, detail=finding.detail + more)
    for name, value, right in pairs:
        if value.dtype != right.dtype:
            return Finding("wrong-dtype", f"{name}: expected {right.dtype}, got {value.dtype}.")
    return None


def _is_right_but_coarse(value: Tensor, right: Tensor) -> bool:
    """Whether a floating-point dtype of fewer bits is all that is wrong with the values."""
    if value.dtype not in (torch.float16, torch.bfloat16):
        return False
    return torch.allclose(
        value.double(), right.double(), rtol=8 * torch.finfo(value.dtype).eps, atol=3e-2
    )


def _compare_share(least: float, value: Tensor, right: Tensor) -> Finding | None:
    """Whether at least that share of rows is right as a whole."""
    if value.shape != right.shape:
        return Finding("wrong-shape", f"expected {tuple(right.shape)}, got {tuple(value.shape)}.")
    share = float((value == right).all(-1).double().mean())
    if share >= least:
        return None
    return Finding("untrained", f"{share:.1%} of the answers are right, {least:.0%} are asked for.")


def _value_finding(name: str, value: Tensor, right: Tensor, wrong: Tensor) -> Finding:
    place = tuple(int(n) for n in wrong.nonzero()[0])
    index = f"[{', '.join(map(str, place))}]" if place else ""
    came, wanted = _number(value[place]), _number(right[place])
    detail = f"{name}{index} should be {wanted}, yours is {came}"
    detail += f" ({int(wrong.sum())} of {wrong.numel()} entries differ)." if place else "."
    if bool((value.isnan() & ~right.isnan()).any()):
        return Finding("nan", detail)
    return Finding(None, detail)


def _broken_property(spec: Spec, name: str, value: Tensor, wrong: Tensor) -> str:
    """What is wrong as a whole: rows that do not sum to 1, all heads but one."""
    where = _only_right_where(spec.axes.get(name, []), wrong)
    if name not in spec.distributions:
        return where
    sums = value.sum(-1)
    if not bool(close(sums, torch.ones_like(sums)).all()):
        worst = (sums - 1).abs().nan_to_num(torch.inf).argmax()
        found = _number(sums.flatten()[worst])
        return f"{where} Rows of {name} should sum to 1; one of yours sums to {found}."
    if bool((value < 0).any()):
        return f"{where} Probabilities are never negative; {name} has negative entries."
    return f"{where} Each row of {name} sums to 1, but the share of each entry is not right."


def _only_right_where(axes: list[str], wrong: Tensor) -> str:
    """` Head 1 alone is right.`, by the first of the named last dimensions that parts them."""
    for number, axis in enumerate(axes):
        place = wrong.ndim - len(axes) + number
        if place < 0:
            continue
        others = [dim for dim in range(wrong.ndim) if dim != place]
        per_index = wrong.any(others) if others else wrong  # torch's any() of no dims takes all
        right = [index for index, fails in enumerate(per_index.tolist()) if not fails]
        if 0 < len(right) < len(per_index):
            if len(right) == 1:
                return f" {axis.capitalize()} {right[0]} alone is right."
            failing = [index for index in range(len(per_index)) if index not in right]
            if len(failing) == 1:
                return f" {axis.capitalize()} {failing[0]} alone is wrong."
            return f" {axis.capitalize()}s {_listing(right)} are right, the others are not."
    return ""


def _listing(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(
        part for part in (", ".join(map(str, numbers[:-1])), str(numbers[-1])) if part
    )


def _compare_gradients(spec: Spec, case: Case, response: Response) -> Finding | None:
    if response.gradient_error is not None:
        diagnosis, detail = _raised_detail(response.gradient_error, spec.time_limit)
        if diagnosis == "raised":
            return Finding("no-gradient", f"with gradients it raised {detail}")
        return Finding(diagnosis, detail)
    for name, right in case.gradients.items():
        found = response.gradients.get(name)
        value = torch.zeros_like(right) if found is None else found
        if value.shape != right.shape:
            return Finding("no-gradient", f"`{name}`: its gradient has another shape.")
        wrong = ~close_gradient(value, right) & ~case.free_gradients.get(name, _nowhere(right))
        if bool(wrong.any()):
            how = "no gradient reaches it" if found is None else "its gradient is wrong"
            return Finding("no-gradient", f"`{name}`: {how}.")
        inexact = (value != right) & case.exact_gradients.get(name, _nowhere(right))
        if bool(inexact.any()):
            return _value_finding(f"the gradient of {name}", value, right, inexact)
    return None


def _nowhere(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor, dtype=torch.bool)


def close(value: Tensor, right: Tensor, exact: Tensor | None = None) -> Tensor:
    """Entry by entry: within tolerance, or identical where `exact` says so."""
    value, right = value.double(), right.double()
    same = (value == right) | (value.isnan() & right.isnan())
    near = (value - right).abs() <= ATOL + RTOL * right.abs()
    near &= right.isfinite()  # else inf would be near everything
    return same | near if exact is None else torch.where(exact, same, same | near)


def close_gradient(value: Tensor, right: Tensor) -> Tensor:
    value, right = value.double(), right.double()
    scale = max(1.0, float(right.abs().max())) if right.numel() else 1.0
    return (value - right).abs() <= ATOL * scale + RTOL * right.abs()


def _misconception(
    asked: list[tuple[Case, Response]], findings: list[Finding | None]
) -> str | None:
    """The first misconception one variant of which gives what was given, on every case.

    An answer with a second mistake that shows in another way (it raises, overflows or has the
    wrong shape in some cases) is named by what fits the other cases.
    """
    whole = [
        pair
        for pair, finding in zip(asked, findings, strict=True)
        if finding is None or finding.diagnosis not in _SHOWN_OTHERWISE
    ]
    return _fitting(asked) or _fitting(whole)


_SHOWN_OTHERWISE = ("raised", "wrong-shape", "nan", "too-slow")


def _fitting(asked: list[tuple[Case, Response]]) -> str | None:
    if all(response.plain.raised for _, response in asked):
        return None  # no values, no evidence
    asked = [(case, response) for case, response in asked if case.misconceptions]
    if not asked:
        return None
    for slug, variants in asked[0][0].misconceptions.items():
        for index in range(len(variants)):
            known = [(case, response, case.misconceptions[slug][index]) for case, response in asked]
            # Where values give a mistake away, it may raise elsewhere in any way.
            strict = not any(
                response.plain.raised is None and not same_outcome(case.expected, outcome)
                for case, response, outcome in known
            )
            fits = all(
                same_outcome(response.plain, outcome, strict) for _, response, outcome in known
            )
            if fits and any(not same_outcome(case.expected, outcome) for case, _, outcome in known):
                return slug
    return None


def same_outcome(given: Outcome, known: Outcome, same_exception: bool = True) -> bool:
    """Both give the same values within tolerance, or both raise; what is unclear fits all."""
    if known.kind == UNCLEAR:
        return True
    if known.raised is not None or given.raised is not None:
        return (
            known.raised is not None
            and given.raised is not None
            and given.raised.type != TIME_LIMIT
            and (given.raised.type == known.raised.type or not same_exception)
        )
    return (
        given.kind == known.kind
        and len(given.values) == len(known.values)
        and all(
            value.shape == right.shape and bool(close(value, right).all())
            for value, right in zip(given.values, known.values, strict=True)
        )
    )


_VALUES_RIGHT = (
    "no-gradient",
    "input-changed",
    "result-changed",
    "wrong-dtype",
    "wrong-parameters",
    "frozen-parameters",
    "unrepeatable",
)


def _pattern(
    spec: Spec, asked: list[tuple[Case, Response]], findings: list[Finding | None]
) -> str | None:
    """A diagnosis from which cases fail: only those with one trait, or one number of dimensions."""
    judged = [
        (case, finding)
        for (case, _), finding in zip(asked, findings, strict=True)
        if case.expected.raised is None and case.question.arguments
    ]
    failed = [case for case, finding in judged if finding]
    passed = [case for case, finding in judged if not finding]
    if not passed or any(finding and finding.diagnosis == "too-slow" for finding in findings):
        return None
    if all(finding is None or finding.diagnosis in _VALUES_RIGHT for _, finding in judged):
        return None
    for trait, slug in spec.trait_diagnoses.items():
        if all(trait in case.traits for case in failed):
            return slug
    # Sizes that are equal or 1, and scores so large that all scales agree, pass by chance.
    leading_failed, leading_passed = (
        {case.leading for case in some if _tells_sizes_apart(case)} for some in (failed, passed)
    )
    if leading_failed and leading_passed and not leading_failed & leading_passed:
        return "no-batch"
    return None


def _tells_sizes_apart(case: Case) -> bool:
    tensors = [value for value in case.question.arguments.values() if isinstance(value, Tensor)]
    return "large" not in case.traits and all(
        len({1, *tensor.shape}) == tensor.ndim + 1 for tensor in tensors
    )


REVERSED = "reversed"  # the trait of a case that is the one before with its first dimension flipped


def what_else_shows(asked: list[tuple[Case, Response]], fails: list[bool]) -> str:
    """Help that needs several cases: one sequence depends on another, one size alone is right."""
    for (_, before), (case, response) in pairwise(asked):
        if REVERSED in case.traits and before.plain.values and response.plain.values:
            first, second = before.plain.values[0], response.plain.values[0]
            steady = not (before.unrepeatable or response.unrepeatable)
            comparable = steady and first.ndim > 0 and first.shape == second.shape
            if comparable and not bool(close(first.flip(0), second).all()):
                return "\nYour result for one entry of a batch depends on the others in it."
    sizes = [_plain_sizes(case) for case, _ in asked]
    for name in {name for size in sizes for name in size}:
        failed = {size.get(name) for size, fail in zip(sizes, fails, strict=True) if fail}
        passed = {size.get(name) for size, fail in zip(sizes, fails, strict=True) if not fail}
        told = [str(value) for value in sorted(value for value in passed if value is not None)]
        apart = told and len(told) == len(passed) and not passed & failed
        if apart and len(told) <= 3 < len(passed | failed):
            return f"\nIt is right only where {name} is {' or '.join(told)}."
    return ""


def _plain_sizes(case: Case) -> dict[str, int]:
    """Those that a module is built with, and the number of heads: others come as they come."""
    setup = case.question.setup.arguments if case.question.setup else {}
    heads = {name: value for name, value in case.question.arguments.items() if name == "n_heads"}
    return {name: value for name, value in (setup | heads).items() if isinstance(value, int)}


def _is_stub(response: Response) -> bool:
    return any(
        outcome.raised is not None and outcome.raised.is_stub
        for outcome in (response.plain, response.traced)
    )


def _raised_detail(raised: Raised, seconds: float) -> tuple[str, str]:
    if raised.type == TIME_LIMIT:
        return "too-slow", f"it was stopped after {seconds:g} s."
    text = f"{raised.type}: {raised.message}" if raised.message else raised.type
    place = f"\n    {raised.line}\n({raised.where})" if raised.line else ""
    return "raised", text + place


def _banned_detail(spec: Spec, names: list[str]) -> str:
    kinds = [text for group in spec.banned for text, is_in in [GROUPS[group]] if is_in(names[0])]
    return f"It calls `{names[0].lstrip('_')}`, which is {kinds[0] if kinds else 'ready-made'}."


def _what_is_wanted(case: Case) -> str:
    if case.question.probe == "training":
        return "a float"
    if case.expected.kind == "tensor" or case.question.probe:
        return "a tensor"
    return f"{len(case.outputs)} tensors ({', '.join(case.outputs)})"


def _where(spec: Spec, case: Case) -> str:
    shapes = ", ".join(
        f"{name} {tuple(value.shape)}" if isinstance(value, Tensor) else f"{name}={value}"
        for name, value in case.question.arguments.items()
    )
    if case.question.setup is None:
        return f"{case.name} ({shapes})"
    built = ", ".join(f"{name}={value}" for name, value in case.question.setup.arguments.items())
    call = f"{spec.id.partition('.')[0]}({built})"
    return f"{case.name} ({call}, {shapes})" if shapes else f"{case.name} ({call})"


def _number(value: Tensor) -> str:
    number = value.item()
    # Plus 0, which makes a 0 of -0.
    return str(number) if isinstance(number, bool | int) else f"{number + 0:.6g}"


def _verdict(spec: Spec, status: str, diagnosis: str | None, detail: str) -> Verdict:
    points = spec.points if status == PASSED else 0.0
    if status == PASSED:
        text = f"Passed: {points_text(points)} of {points_text(spec.points)} points."
        return Verdict(spec.id, status, points, spec.points, None, text)
    sentence = {**GENERIC_DIAGNOSES, **spec.diagnoses}.get(diagnosis or "", "")
    lead = sentence or "The values are not right."
    message = "\n".join(part for part in (lead, detail) if part)
    return Verdict(spec.id, status, points, spec.points, diagnosis, message)


# --- channel --------------------------------------------------------------------------------------

DESCRIPTOR_VARIABLE = "AUTOGRADER_JUDGE_DESCRIPTOR"
LARGEST_MESSAGE = 32 * 2**20  # bytes


class ChannelClosed(ConnectionError):
    """The other side is gone."""


class OutOfStep(MalformedData):
    """What came cannot be read, nor can what comes after it."""


class Channel:
    """One end of the line; `seconds` bounds each wait for a message (None: no bound)."""

    def __init__(self, end: socket.socket, seconds: float | None = None) -> None:
        self.end = end
        self.end.settimeout(seconds)
        self.messages = self.bytes = 0  # that came

    @classmethod
    def inherited(cls) -> Channel | None:
        """The end that this process was started with, if it was."""
        descriptor = os.environ.get(DESCRIPTOR_VARIABLE)
        # A copy: a notebook may load its check twice, and what is dropped closes its own.
        return cls(socket.socket(fileno=os.dup(int(descriptor)))) if descriptor else None

    def send(self, message: dict[str, Any]) -> None:
        data = pack(message)
        if len(data) > LARGEST_MESSAGE:
            raise MalformedData(f"a message of {len(data)} bytes is too long")
        try:
            self.end.sendall(len(data).to_bytes(8, "little") + data)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """The next message; ChannelClosed, TimeoutError or MalformedData where none comes.

        After MalformedData, but not after OutOfStep, the next one can be read.
        """
        length = int.from_bytes(self._read(8), "little")
        if length > LARGEST_MESSAGE:
            raise OutOfStep(f"a message of {length} bytes is announced, which is too long")
        self.messages, self.bytes = self.messages + 1, self.bytes + length
        message = unpack(self._read(length))
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise MalformedData("a message without a type")
        return message

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            try:
                chunk = self.end.recv(min(length - len(data), 2**20))
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not chunk:
                raise ChannelClosed("the other side closed the line")
            data += chunk
        return bytes(data)

    def close(self) -> None:
        self.end.close()


def answer_questions(channel: Channel, exercise: str, answer: Callable[..., Any]) -> bool:
    """Offer `answer` to the judge and respond until it has no further question.

    False where the answer ran out of time, which is all that is known of it here.
    """
    channel.send({"type": "offer", "exercise": exercise})
    message = channel.receive()
    if message["type"] != "begin":
        return True
    evaluator = Evaluator(answer, message["banned"], message["time_limit"])
    message = channel.receive()
    with kept_modes():
        while message["type"] == "question":
            response = evaluator(parse_question(message["question"]))
            channel.send({"type": "response", "response": to_data(response)})
            message = channel.receive()
    return evaluator.clock.left() > 0


# --- check ----------------------------------------------------------------------------------------

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
