"""How an exercise is posed: the words that a topic's module is written in.

A topic is a list of exercises. An exercise has a reference, the mistakes that students make in it
(each with a sentence and the wrong code, written once), and a function that poses it: it draws
inputs, and each `Posed` becomes a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from autograder.student.cases import Outcome, Question, Response, Setup
from autograder.student.judge import REVERSED

Answer = Callable[..., Any]  # a function, or the class of a module


class Draw:
    """Random sizes and tensors from one seed, so that a case set is a function of its seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def sizes(self, count: int, low: int = 2, high: int = 7) -> list[int]:
        """`count` sizes from low to high, all different: no wrong axis fits by chance."""
        order = torch.randperm(high - low + 1, generator=self.generator)[:count]
        return [low + int(n) for n in order]

    def shape(self, leading: int, count: int) -> tuple[list[int], list[int]]:
        """`leading` small sizes to stand in front, and `count` others; all of them different."""
        sizes = self.sizes(leading + count, 2, 2 + leading + count)
        front = sorted(sizes)[:leading]
        return front, [size for size in sizes if size not in front]

    def normal(self, *shape: int) -> Tensor:
        """Nearly normal entries of unit variance, float32: sums of three uniform draws.

        They are whole multiples of 2**-10, so that every machine draws the same ones to the bit;
        torch.randn differs in the last place between processors.
        """
        draws = torch.randint(-(2**10), 2**10, (3, *shape), generator=self.generator)
        return draws.sum(0) / 2**10  # each has a variance of 2**20 / 3

    def signs(self, count: int) -> Tensor:
        """Entries of 1 or -1."""
        return torch.randint(0, 2, (count,), generator=self.generator) * 2.0 - 1.0

    def permutation(self, count: int) -> list[int]:
        return torch.randperm(count, generator=self.generator).tolist()

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Whole numbers from low up to, not with, high; int64."""
        return torch.randint(low, high, shape, generator=self.generator)

    def parameters(self, module: nn.Module) -> dict[str, Tensor]:
        """Values for all parameters of such a module, so large that each of them matters.

        Weights keep unit variance in and out; biases, and a norm's weights around 1, spread by 0.5.
        """
        found = {}
        for name, parameter in module.named_parameters():
            values = self.normal(*parameter.shape)
            if parameter.ndim > 1:
                found[name] = values / math.sqrt(parameter.shape[-1])
            else:
                found[name] = values / 2 + float(name.endswith("weight"))
        return found


def leading_name(count: int) -> str:
    """How a student reads of a case with `count` leading dimensions."""
    return f"{count or 'no'} leading dimension{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Posed:
    """One call to make. `name` is what a student may read of it; `leading` counts the leading
    dimensions; see `student.cases` for the rest.

    `outputs` differs from the exercise's in some cases. `cotangents` are drawn where none are
    given. With `raises` a ValueError is due. `expected` stands in for what a reference would give.
    Where a call is not `telling`, no mistake is told by its values: the case file stays small.
    """

    name: str
    arguments: dict[str, Any]
    leading: int = 0
    traits: list[str] = field(default_factory=list)
    exact: list[Tensor | None] = field(default_factory=list)
    setup: Setup | None = None
    probe: str = ""
    outputs: list[str] | None = None
    cotangents: list[Tensor | None] | None = None
    exact_gradients: dict[str, Tensor] = field(default_factory=dict)
    free_gradients: dict[str, Tensor] = field(default_factory=dict)
    raises: bool = False
    telling: bool = True
    expected: Outcome | None = None


def must_not_build(name: str, **arguments: Any) -> Posed:
    """The constructor must raise a ValueError on these arguments."""
    return Posed(name, {}, setup=Setup(arguments), probe="only-building", raises=True)


def once_more(posed: Posed, name: str, arguments: dict[str, Any], **changes: Any) -> Posed:
    """A further call of the module that was built for `posed`; `evaluating=True`: in eval mode.

    Mistakes are named by the first call; this one is for modules that change or remember.
    """
    assert posed.setup is not None
    setup = replace(posed.setup, again=True, **changes)
    return replace(posed, name=name, arguments=arguments, setup=setup, telling=False)


def reversed_batch(posed: Posed) -> Posed:
    """The same module on the same batch in reverse order, right after `posed`: whether the result
    for one entry depends on the others is told from the two."""
    turned = {
        name: value.flip(0) if isinstance(value, Tensor) else value
        for name, value in posed.arguments.items()
    }
    again = once_more(posed, f"{posed.name}, the batch in reverse order", turned)
    return replace(again, traits=[*posed.traits, REVERSED])


@dataclass(frozen=True)
class Misconception:
    """A mistake that students make: its slug, a sentence that teaches, and the wrong code.

    Each variant takes the arguments of the exercise and gives what a student with this mistake
    would get.
    """

    slug: str
    sentence: str
    variants: list[Answer]


@dataclass(frozen=True)
class Exercise:
    """An exercise: `cases` poses it with a `Draw`; see `student.cases.Spec` for the rest.

    `reference` is a function or the class of a module; `outputs` names what a call gives.
    `trait_diagnoses` has, for a trait of cases, the slug of an answer that fails on those alone.
    `sentences` explains slugs that have no code of their own. `examine` is what the judge makes of
    a response by means of its own, before it compares.
    """

    id: str
    points: float
    reference: Answer
    cases: Callable[[Draw], Iterator[Posed]]
    outputs: list[str]
    misconceptions: list[Misconception]
    distributions: list[str] = field(default_factory=list)
    axes: dict[str, list[str]] = field(default_factory=dict)
    banned: list[str] = field(default_factory=list)
    builds_on: list[str] = field(default_factory=list)
    trait_diagnoses: dict[str, str] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    time_limit: float = 10.0  # seconds, for all cases together; a right answer takes about 0.1
    accuracy: float = 0.0
    examine: Callable[[Question, Response], Response] | None = None


@dataclass(frozen=True)
class Topic:
    """A topic: its name in every folder, the seed of its public cases, its exercises in order."""

    name: str
    exercises: list[Exercise]
    public_seed: int = 1
