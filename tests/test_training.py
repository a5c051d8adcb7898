"""Topic 06's toy task: what it takes to pass it, and that the judge believes parameters alone."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.build.cases import build_cases, build_public_cases
from autograder.exercises import TOPICS
from autograder.exercises.training import ENOUGH, LENGTH, SYMBOLS, TOY, TOY_TASK, generated
from autograder.runner.session import conclude
from autograder.student.check import judge_answer
from autograder.student.evaluation import Evaluator
from autograder.student.verdicts import FAILED, Verdict
from solutions.training import TinyTransformer, generate, reversals, train_step

STEPS, BATCH, RATE = 800, 64, 3e-3  # as the notebook trains
QUICK = 60  # steps that leave it untrained
EXERCISE = "toy_task"


@cache
def trained(
    seed: int, steps: int = STEPS, length: int = LENGTH, symbols: int = SYMBOLS
) -> TinyTransformer:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = TinyTransformer(**TOY | {"vocab_size": symbols + 1, "max_len": 2 * length + 1})
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        train_step(model, optimizer, reversals(BATCH, length, symbols, generator))
    return model


def share_right(
    model: TinyTransformer, seed: int, length: int = LENGTH, symbols: int = SYMBOLS
) -> float:
    tokens = reversals(500, length, symbols, torch.Generator().manual_seed(seed))
    said = generate(model, tokens[:, : length + 1], length)
    return float((said == tokens).all(-1).double().mean())


def graded(model: Any) -> Verdict:
    """By the judge's own means, as in grading."""
    cases = build_cases(TOPICS["06_training"], 77)
    evaluator = Evaluator(model, [], 60.0)
    given = {EXERCISE: [evaluator(case.question) for case in cases.cases[EXERCISE]]}
    return next(item for item in conclude(cases, given) if item.exercise == EXERCISE)


@pytest.mark.parametrize("seed", range(10))
def test_each_of_ten_seeds_learns_a_smaller_task(seed: int) -> None:
    """The whole task for all of them: python benchmarks/toy_task.py"""
    model = trained(seed, 300, 4, 6)
    assert share_right(model, 100 + seed, 4, 6) >= 0.99


def test_the_reference_learns_to_reverse() -> None:
    model = trained(0)
    assert share_right(model, 100) >= 0.99
    assert graded(model).passed
    assert judge_answer(build_public_cases(TOPICS["06_training"]), EXERCISE, model).passed


def test_a_model_that_learned_little_is_untrained() -> None:
    model = trained(0, QUICK)
    for verdict in (
        graded(model),
        judge_answer(build_public_cases(TOPICS["06_training"]), EXERCISE, model),
    ):
        assert (verdict.status, verdict.diagnosis) == (FAILED, "untrained")
        assert "of the answers are right" in verdict.message


class Cheat(nn.Module):
    """Says what it reads in the prompt, and has the parameters of an untrained model."""

    def __init__(self) -> None:
        super().__init__()
        for name, part in TinyTransformer(**TOY).named_children():
            setattr(self, name, part)
        self.max_len = TOY["max_len"]

    def forward(self, tokens: Tensor) -> Tensor:
        place = 2 * LENGTH - tokens.shape[-1]
        said = tokens[:, place] if 0 <= place < LENGTH else tokens[:, 0]
        return nn.functional.one_hot(said, SYMBOLS + 1).float().unsqueeze(1)


def test_the_judge_believes_parameters_alone() -> None:
    cheat = Cheat()
    assert judge_answer(build_public_cases(TOPICS["06_training"]), EXERCISE, cheat).passed
    assert graded(cheat).diagnosis == "untrained"


def test_a_model_of_other_sizes_is_told() -> None:
    model = TinyTransformer(**TOY | {"d_model": 16})
    verdict = graded(model)
    assert verdict.status == FAILED
    assert "parameters are not those" in verdict.message


def test_parameters_that_were_never_sent_are_not_believed() -> None:
    case = build_cases(TOPICS["06_training"], 77).cases[EXERCISE][0]
    response = Evaluator(trained(0, QUICK), [], 60.0)(case.question)
    short = replace(response, plain=replace(response.plain, values=response.plain.values[:3]))
    assert generated(case.question, short).plain.raised is not None


def test_enough_is_what_the_course_promises() -> None:
    assert TOY_TASK.accuracy == ENOUGH == 0.95
