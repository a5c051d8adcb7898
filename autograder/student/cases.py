"""What an answer is asked, what it gave, and what would have been right: all of it data.

A `Case` is made ahead from the reference and its misconceptions, so that judging needs neither.
Of a case only its `Question` is ever shown to an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from torch import Tensor

from autograder.student.tensors import MalformedData, pack, unpack


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
