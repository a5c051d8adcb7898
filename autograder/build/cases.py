"""Cases from a topic: the reference and its misconceptions, run once on drawn inputs.

Both run in float64 and are rounded once: so the whole tolerance belongs to the student's rounding,
and every machine makes the same cases to the bit. A misconception that float32 takes elsewhere (it
divides what cancels, say) is left unclear on that case, and nothing is told from it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.exercises.posing import Answer, Draw, Exercise, Posed, Topic
from autograder.student.cases import UNCLEAR, Case, CaseSet, Outcome, Question, Raised, Spec
from autograder.student.evaluation import as_outcome, fresh_copies, tensors_in
from autograder.student.judge import same_outcome
from autograder.student.verdicts import GENERIC_DIAGNOSES


def build_cases(topic: Topic, seed: int) -> CaseSet:
    """All cases of a topic, a function of the seed alone."""
    draw = Draw(seed)
    return CaseSet(
        topic=topic.name,
        seed=seed,
        specs={exercise.id: spec_of(exercise) for exercise in topic.exercises},
        cases={
            exercise.id: [build_case(exercise, posed, draw) for posed in exercise.cases(draw)]
            for exercise in topic.exercises
        },
    )


def build_public_cases(topic: Topic) -> CaseSet:
    """The cases that ship with the release: the same for everybody."""
    return build_cases(topic, topic.public_seed)


def spec_of(exercise: Exercise) -> Spec:
    own = {item.slug: item.sentence for item in exercise.misconceptions} | exercise.sentences
    for slug in exercise.trait_diagnoses.values():
        if slug not in own and slug not in GENERIC_DIAGNOSES:
            raise ValueError(f"{exercise.id}: the diagnosis {slug!r} has no sentence")
    return Spec(
        id=exercise.id,
        points=float(exercise.points),
        outputs=exercise.outputs,
        distributions=exercise.distributions,
        banned=exercise.banned,
        builds_on=exercise.builds_on,
        diagnoses=own,
        trait_diagnoses=exercise.trait_diagnoses,
        time_limit=exercise.time_limit,
    )


def build_case(exercise: Exercise, posed: Posed, draw: Draw) -> Case:
    doubled = in_double(posed.arguments)
    leaves = {
        name: value.requires_grad_()
        for name, value in doubled.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    returned = exercise.reference(**doubled)
    outputs = tensors_in(returned)
    cotangents = [draw.normal(*output.shape) for output in outputs]
    gradients = torch.autograd.grad(
        outputs, list(leaves.values()), [cotangent.double() for cotangent in cotangents]
    )
    expected = as_outcome(returned)
    return Case(
        name=posed.name,
        question=Question(posed.arguments, list(cotangents)),
        expected=Outcome(expected.kind, [in_single(value) for value in expected.values]),
        gradients={
            name: in_single(gradient) for name, gradient in zip(leaves, gradients, strict=True)
        },
        leading=posed.leading,
        traits=posed.traits,
        exact=posed.exact,
        misconceptions={
            item.slug: [run_variant(variant, posed.arguments) for variant in item.variants]
            for item in exercise.misconceptions
        },
    )


def in_double(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of the arguments, floating-point tensors in float64."""
    return {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else copy
        for (name, value), copy in zip(
            arguments.items(), fresh_copies(arguments).values(), strict=True
        )
    }


def in_single(value: Tensor) -> Tensor:
    """Rounded to float32, with one NaN for all: its bits are the processor's choice."""
    if not value.is_floating_point():
        return value
    rounded = value.detach().float()
    return rounded.masked_fill(rounded.isnan(), torch.nan)


def run_variant(variant: Answer, arguments: dict[str, Any]) -> Outcome:
    """What a wrong answer gives; an exception is kept by its type alone."""
    exact, rounded = _run(variant, in_double(arguments)), _run(variant, fresh_copies(arguments))
    return exact if same_outcome(rounded, exact) else Outcome(UNCLEAR)


def _run(variant: Answer, arguments: dict[str, Any]) -> Outcome:
    try:
        with torch.no_grad():
            outcome = as_outcome(variant(**arguments))
            return Outcome(outcome.kind, [in_single(value) for value in outcome.values])
    except Exception as error:
        return Outcome("raised", raised=Raised(type(error).__name__))
