"""Cases from a topic: the reference and its misconceptions, run once on drawn inputs.

Both run in float64 and are rounded once: so the whole tolerance belongs to the student's rounding,
and every machine makes the same cases to the bit. A misconception that float32 takes elsewhere (it
divides what cancels, say) is left unclear on that case, and nothing is told from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.posing import Answer, Draw, Exercise, Posed, Topic
from autograder.student.cases import (
    UNCLEAR,
    Case,
    CaseSet,
    Outcome,
    Question,
    Raised,
    Setup,
    Spec,
)
from autograder.student.evaluation import (
    as_outcome,
    build_module,
    fresh_copies,
    named_parameters,
    probed,
    tensors_in,
)
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


def without_training(topic: Topic, cases: CaseSet) -> CaseSet:
    """The cases of exercises that need nothing that a notebook has trained, as plain files do."""
    return cases.only(item.id for item in topic.exercises if not item.accuracy)


def spec_of(exercise: Exercise) -> Spec:
    own = {item.slug: item.sentence for item in exercise.misconceptions} | exercise.sentences
    for slug in [*exercise.trait_diagnoses.values(), *exercise.renamed.values()]:
        if slug not in own and slug not in GENERIC_DIAGNOSES:
            raise ValueError(f"{exercise.id}: the diagnosis {slug!r} has no sentence")
    return Spec(
        id=exercise.id,
        points=float(exercise.points),
        distributions=exercise.distributions,
        axes=exercise.axes,
        banned=exercise.banned,
        builds_on=exercise.builds_on,
        diagnoses=own,
        trait_diagnoses=exercise.trait_diagnoses,
        renamed=exercise.renamed,
        time_limit=exercise.time_limit,
        accuracy=exercise.accuracy,
    )


def build_case(exercise: Exercise, posed: Posed, draw: Draw) -> Case:
    question = Question(posed.arguments, [], posed.setup, posed.probe, layout_of(posed.arguments))
    expected, outputs, leaves = run_reference(exercise, posed, question)
    if (expected.raised is not None) != posed.raises:
        raise ValueError(f"{exercise.id}, {posed.name}: the reference gives {expected}")
    cotangents = posed.cotangents or [
        draw.normal(*output.shape) if output.requires_grad else None for output in outputs
    ]
    return Case(
        name=posed.name,
        question=replace(question, cotangents=cotangents),
        expected=Outcome(expected.kind, list(map(in_single, expected.values)), expected.raised),
        gradients=gradients_of(outputs, leaves, cotangents),
        outputs=exercise.outputs if posed.outputs is None else posed.outputs,
        leading=posed.leading,
        traits=posed.traits,
        exact=posed.exact,
        exact_gradients=posed.exact_gradients,
        free_gradients=posed.free_gradients,
        misconceptions={
            item.slug: [run_variant(variant, question) for variant in item.variants]
            for item in exercise.misconceptions
            if posed.telling and not posed.raises
        },
    )


def run_reference(
    exercise: Exercise, posed: Posed, question: Question
) -> tuple[Outcome, list[Tensor], dict[str, Tensor]]:
    """What the reference gives, as data and as it is, and the tensors to differentiate by."""
    if posed.expected is not None:
        return posed.expected, [], {}
    doubled = in_double(question.inputs())
    leaves = {
        name: value.requires_grad_()
        for name, value in doubled.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    target = exercise.reference
    try:
        if question.setup is not None:
            target = build_module(target, setup_in_double(question.setup), in_double=True)
            found = named_parameters(target)
            leaves |= {name: found[name] for name in question.setup.parameters}
        returned = probed(target, question.probe)(**doubled)
    except ValueError:
        return Outcome("raised", raised=Raised("ValueError", is_value_error=True)), [], {}
    return as_outcome(returned), tensors_in(returned), leaves


def gradients_of(
    outputs: list[Tensor], leaves: dict[str, Tensor], cotangents: list[Tensor | None]
) -> dict[str, Tensor]:
    """By each leaf; empty where no output depends on any."""
    pulled = [
        (output, cotangent.double())
        for output, cotangent in zip(outputs, cotangents, strict=True)
        if cotangent is not None
    ]
    if not pulled:
        return {}
    found = torch.autograd.grad(
        [output for output, _ in pulled],
        list(leaves.values()),
        [cotangent for _, cotangent in pulled],
        allow_unused=True,
    )
    return {
        name: in_single(torch.zeros_like(leaf) if gradient is None else gradient)
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
    }


def layout_of(arguments: dict[str, Any]) -> dict[str, list[int]]:
    """For tensors that are views, the order of their dimensions in memory, outermost first."""
    return {
        name: sorted(range(value.ndim), key=value.stride().__getitem__, reverse=True)
        for name, value in arguments.items()
        if isinstance(value, Tensor) and not value.is_contiguous()
    }


def in_double(arguments: dict[str, Any]) -> dict[str, Any]:
    """Copies of the arguments, floating-point tensors in float64."""
    return {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else copy
        for (name, value), copy in zip(
            arguments.items(), fresh_copies(arguments).values(), strict=True
        )
    }


def setup_in_double(setup: Setup) -> Setup:
    return replace(setup, parameters=in_double(setup.parameters))


def in_single(value: Tensor) -> Tensor:
    """Rounded to float32, with one NaN for all: its bits are the processor's choice."""
    if not value.is_floating_point():
        return value
    rounded = value.detach().float()
    # What is 0 but for rounding (the gradient of the keys' bias, say) differs between processors.
    rounded = rounded.masked_fill(rounded.abs() < 1e-12, 0.0)
    return rounded.masked_fill(rounded.isnan(), torch.nan)


def run_variant(variant: Answer, question: Question) -> Outcome:
    """What a wrong answer gives; an exception is kept by its type alone."""
    exact, rounded = _run(variant, question, True), _run(variant, question, False)
    return exact if same_outcome(rounded, exact) else Outcome(UNCLEAR)


def _run(variant: Answer, question: Question, doubled: bool) -> Outcome:
    arguments, setup = question.inputs(), question.setup
    try:
        if setup is not None:
            setup = setup_in_double(setup) if doubled else setup
            variant = build_module(variant, setup, in_double=doubled)
        inputs = in_double(arguments) if doubled else fresh_copies(arguments)
        with torch.set_grad_enabled(bool(question.probe)):  # a probe may train
            outcome = as_outcome(probed(variant, question.probe)(**inputs))
            return Outcome(outcome.kind, [in_single(value) for value in outcome.values])
    except Exception as error:
        return Outcome("raised", raised=Raised(type(error).__name__))
