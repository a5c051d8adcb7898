"""Cases and verdicts: every known mistake is rejected and named, every right answer passes."""

import hashlib
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from autograder.build.cases import build_cases, build_public_cases
from autograder.exercises import TOPICS
from autograder.exercises.posing import Exercise
from autograder.student.cases import Case, CaseSet, Outcome, Question
from autograder.student.check import judge_answer
from autograder.student.evaluation import Evaluator, kept_modes
from autograder.student.judge import REVERSED, judge, same_outcome
from autograder.student.tensors import unpack
from autograder.student.verdicts import FAILED, GENERIC_DIAGNOSES, Verdict
from solutions.self_attention import attention, attention_scores, self_attention, softmax

SEEDS = [None, 11, 12, 13, 14, 15]  # None: the public cases
EXERCISES = [(topic, exercise) for topic in TOPICS.values() for exercise in topic.exercises]
NAMES = [f"{topic.name}-{exercise.id}" for topic, exercise in EXERCISES]
every_exercise = pytest.mark.parametrize(("topic", "exercise"), EXERCISES, ids=NAMES)
every_seed = pytest.mark.parametrize("seed", SEEDS)

HEADS = [
    *("scaled-by-d-model", "unscaled", "one-head", "qkv-order", "no-transpose", "interleaved"),
    *("no-out-proj", "softmax-over-queries", "softmax-over-heads"),
]
BLOCK = [
    *("no-residual", "no-residual-attn", "no-residual-ff", "norm-order", "norm-before-add"),
    *("shared-norm", "ff-reads-input", "no-activation", "norms-exchanged"),
]

# The diagnoses that the course promises for each exercise, besides the generic ones.
PROMISED = {
    ("01_self_attention", "softmax"): ["unstable", "global-max", "global-sum", "wrong-dim"],
    ("01_self_attention", "attention_scores"): [
        "unscaled",
        "scaled-by-d",
        "multiplied",
        "scaled-by-seq",
        "transposed",
    ],
    ("01_self_attention", "attention"): [
        "softmax-over-queries",
        "unscaled",
        "scaled-by-d",
        "scaled-by-value-dim",
        "raw-scores",
        "swapped-return",
    ],
    ("01_self_attention", "self_attention"): [
        "swapped-roles",
        "no-value-projection",
        "transposed-weights",
        "scaled-by-d-model",
        "unscaled",
        "softmax-over-queries",
    ],
    ("02_multi_head_attention", "split_heads"): ["no-transpose", "interleaved"],
    ("02_multi_head_attention", "merge_heads"): ["no-transpose", "interleaved", "view-crash"],
    ("02_multi_head_attention", "MultiHeadAttention"): HEADS,
    ("03_positional_encoding", "positional_encoding"): [
        *("concatenated", "swapped-sin-cos", "wrong-frequency", "wrong-base", "one-based"),
        "odd-crash",
    ],
    ("03_positional_encoding", "shift_matrix"): [
        *("backward", "concatenated", "wrong-frequency", "wrong-base", "negative-offset"),
    ],
    ("03_positional_encoding", "PositionalEncoding"): [
        *("trainable", "not-a-buffer", "replaces-input", "wrong-axis", "scaled-input"),
        "last-rows",
    ],
    ("04_transformer_block", "layer_norm"): [
        *("unbiased-variance", "eps-outside", "eps-ignored", "wrong-dim", "no-affine", "no-mean"),
    ],
    ("04_transformer_block", "TransformerBlock"): [*BLOCK, "missing-last-norm"],
    ("04_transformer_block", "TransformerBlock.norm_first"): [*BLOCK, "residual-from-norm"],
    ("05_causal_mask", "causal_mask"): ["strict", "inverted", "transposed"],
    ("05_causal_mask", "mask_scores"): ["inverted", "zero-fill", "large-negative"],
    ("05_causal_mask", "MultiHeadAttention"): [
        *("mask-after-softmax", "strict", "transposed", "zero-fill", "never-causal"),
        *("always-causal", *HEADS),
    ],
    ("05_causal_mask", "TransformerBlock"): [
        *("never-causal", "always-causal", "no-residual", "norm-order"),
    ],
    ("06_training", "next_token_loss"): ["no-shift", "wrong-shift", "summed", "double-softmax"],
    ("06_training", "TinyTransformer"): [
        *("no-positions", "never-causal", "always-causal", "shared-blocks"),
        *("returns-probabilities", "scaled-embedding", "one-block"),
    ],
    ("06_training", "train_step"): ["no-zero-grad", "no-step", "loss-after"],
    ("06_training", "generate"): [
        *("first-position", "no-crop", "records-gradient", "mode-changed", "only-new"),
    ],
    ("06_training", "toy_task"): ["untrained"],
}


@cache
def case_set(topic: str, seed: int | None) -> CaseSet:
    if seed is None:
        return build_public_cases(TOPICS[topic])
    return build_cases(TOPICS[topic], seed)


def verdict_on(topic: str, seed: int | None, exercise: Exercise, answer: Any) -> Verdict:
    return judge_answer(case_set(topic, seed), exercise.id, answer)


# ---- references and misconceptions


@every_seed
@every_exercise
def test_the_reference_passes(topic: Any, exercise: Exercise, seed: int | None) -> None:
    if exercise.accuracy:
        pytest.skip("judged on what was trained: see test_training.py")
    verdict = verdict_on(topic.name, seed, exercise, exercise.reference)
    assert verdict.passed, verdict.message
    assert verdict.points == exercise.points


@every_seed
@every_exercise
def test_every_misconception_is_rejected_by_its_name(
    topic: Any, exercise: Exercise, seed: int | None
) -> None:
    cases = case_set(topic.name, seed)
    for misconception in exercise.misconceptions:
        for number, variant in enumerate(misconception.variants):
            # Variants may use what is banned to the student, so they are not watched.
            evaluator = Evaluator(variant, [], 60.0)
            with kept_modes():
                responses = [evaluator(case.question) for case in cases.cases[exercise.id]]
            verdict = judge(cases.specs[exercise.id], cases.cases[exercise.id], responses)
            assert verdict.status == FAILED, (misconception.slug, number)
            assert verdict.diagnosis == misconception.slug, (misconception.slug, number)
            assert misconception.sentence in verdict.message


@every_exercise
def test_no_two_misconceptions_look_the_same(topic: Any, exercise: Exercise) -> None:
    for seed in SEEDS:
        asked = case_set(topic.name, seed).cases[exercise.id]
        cases = [case for case in asked if case.misconceptions]
        variants = [
            (item.slug, [case.misconceptions[item.slug][number] for case in cases])
            for item in exercise.misconceptions
            for number in range(len(item.variants))
        ]
        for place, (slug, outcomes) in enumerate(variants):
            for other, others in variants[:place]:
                same = all(same_outcome(*pair) for pair in zip(outcomes, others, strict=True))
                assert not same or slug == other, f"seed {seed}: {slug} and {other}"


@every_exercise
def test_every_promised_diagnosis_can_be_given(topic: Any, exercise: Exercise) -> None:
    with_code = {item.slug for item in exercise.misconceptions if item.variants}
    by_trait = {*exercise.trait_diagnoses.values(), *exercise.renamed.values()}
    by_trait |= {"untrained"} if exercise.accuracy else set()
    sentences = {**GENERIC_DIAGNOSES, **case_set(topic.name, None).specs[exercise.id].diagnoses}
    for slug in PROMISED.get((topic.name, exercise.id), []):
        assert slug in with_code | by_trait
    for slug in with_code | by_trait:
        assert len(sentences[slug]) > 40


@every_exercise
def test_every_trait_with_a_diagnosis_occurs(topic: Any, exercise: Exercise) -> None:
    for seed in SEEDS:
        traits = {
            trait for case in case_set(topic.name, seed).cases[exercise.id] for trait in case.traits
        }
        assert set(exercise.trait_diagnoses) <= traits


def test_every_promise_is_about_an_exercise() -> None:
    known = {(topic.name, exercise.id) for topic, exercise in EXERCISES}
    assert set(PROMISED) <= known


# ---- cases


def sizes_of(case: Case) -> list[int]:
    """The sizes that a call is made with: of the first argument, and the last ones of the rest."""
    tensors = [value for value in case.question.arguments.values() if isinstance(value, Tensor)]
    if len(tensors) == 1:
        return list(tensors[0].shape)
    if "w_q" in case.question.arguments:
        _, _, w_k, w_v = tensors
        return [*tensors[0].shape, w_k.shape[-1], w_v.shape[-1]]
    seq = [tensors[1].shape[-2]]
    return [*tensors[0].shape, *seq, *(value.shape[-1] for value in tensors[2:])]


@every_seed
def test_for_each_number_of_leading_dimensions_a_case_has_sizes_that_all_differ(
    seed: int | None,
) -> None:
    cases = case_set("01_self_attention", seed)
    for exercise in cases.specs:
        for leading in range(4):
            sizes = [sizes_of(case) for case in cases.cases[exercise] if case.leading == leading]
            assert any(len(set(found)) == len(found) for found in sizes), (exercise, leading)


@pytest.mark.parametrize("topic", TOPICS)
def test_cases_are_a_function_of_the_seed(topic: str) -> None:
    again = build_cases(TOPICS[topic], 11)
    assert again.to_bytes() == case_set(topic, 11).to_bytes()
    assert case_set(topic, 12).to_bytes() != again.to_bytes()
    for exercise in again.cases:
        for mine, theirs in zip(
            again.cases[exercise], case_set(topic, 12).cases[exercise], strict=False
        ):
            for name, value in mine.question.arguments.items():
                other = theirs.question.arguments.get(name)
                if isinstance(value, Tensor) and isinstance(other, Tensor) and value.numel() > 8:
                    assert not torch.equal(value, other) or not value.is_floating_point()


@pytest.mark.parametrize("topic", TOPICS)
def test_cases_are_the_same_to_the_bit_on_a_plain_processor(topic: str) -> None:
    code = (
        "import hashlib, sys\n"
        "from autograder.build.cases import build_cases\n"
        "from autograder.exercises import TOPICS\n"
        "print(hashlib.sha256(build_cases(TOPICS[sys.argv[1]], 11).to_bytes()).hexdigest())\n"
    )
    plain = subprocess.run(
        [sys.executable, "-c", code, topic],
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default"},
        capture_output=True,
        text=True,
        check=True,
    )
    here = hashlib.sha256(case_set(topic, 11).to_bytes()).hexdigest()
    assert plain.stdout.strip() == here


@pytest.mark.parametrize("topic", TOPICS)
def test_cases_survive_the_way_through_a_file(topic: str) -> None:
    cases = case_set(topic, None)
    again = CaseSet.from_bytes(cases.to_bytes())
    assert again.to_bytes() == cases.to_bytes()
    assert again.specs == cases.specs


@pytest.mark.parametrize("topic", TOPICS)
def test_public_cases_hold_data_and_no_code(topic: str) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                walk(item)
        else:
            assert value is None or isinstance(value, Tensor | str | int | float | bool)

    data = case_set(topic, None).to_bytes()
    walk(unpack(data))
    for sign in (b"lambda", b"def ", b"import ", b"solutions", b"__code__"):
        assert sign not in data


@every_seed
@every_exercise
def test_what_is_expected_is_finite(topic: Any, exercise: Exercise, seed: int | None) -> None:
    for case in case_set(topic.name, seed).cases[exercise.id]:
        for number, value in enumerate(case.expected.values):
            exact = case.exact[number] if case.exact else None
            assert (value.isfinite() | (False if exact is None else exact)).all()
        assert all(gradient.isfinite().all() for gradient in case.gradients.values())


@every_exercise
def test_a_reversed_batch_follows_the_case_that_it_reverses(topic: Any, exercise: Exercise) -> None:
    for seed in SEEDS:
        for before, case in itertools.pairwise(case_set(topic.name, seed).cases[exercise.id]):
            if REVERSED in case.traits:
                for name, value in case.question.arguments.items():
                    assert torch.equal(value, before.question.arguments[name].flip(0))


# ---- verdicts on single mistakes


def softmax_with(change: Callable[[Tensor], Tensor]) -> Verdict:
    exercise = TOPICS["01_self_attention"].exercises[0]
    return verdict_on(
        "01_self_attention", None, exercise, lambda scores, dim=-1: change(softmax(scores, dim))
    )


@pytest.mark.parametrize("noise", [1e-3, 2e-4])
def test_noise_above_the_tolerance_fails(noise: float) -> None:
    assert softmax_with(lambda p: p + noise * (p > 0)).status == FAILED


def test_noise_below_the_tolerance_passes() -> None:
    assert softmax_with(lambda p: p + 2e-6 * (p > 0)).passed


def test_the_exact_is_exact() -> None:
    assert softmax_with(lambda p: p.clamp(min=1e-30)).status == FAILED


def test_a_message_tells_index_and_both_values() -> None:
    message = softmax_with(lambda p: p * 2).message
    assert "result[0] should be" in message
    assert "yours is" in message


def test_the_same_outcome() -> None:
    one, two = Outcome("tensor", [torch.ones(2)]), Outcome("tensor", [torch.ones(2) * 2])
    assert same_outcome(one, one)
    assert not same_outcome(one, two)
    assert not same_outcome(one, Outcome("tensor", [torch.ones(2, 1)]))
    assert not same_outcome(one, Outcome("sequence", [torch.ones(2)]))


def test_a_wrong_gradient_alone_is_no_gradient() -> None:
    assert softmax_with(lambda p: p.detach()).diagnosis == "no-gradient"
    assert softmax_with(lambda p: (2 * p) - p.detach()).diagnosis == "no-gradient"


def test_an_answer_is_called_by_position_and_by_name() -> None:
    calls: list[tuple[int, set[str]]] = []

    def answer(*args: Tensor, **named: Tensor) -> Tensor:
        calls.append((len(args), set(named)))
        return softmax(*args, **named)

    Evaluator(answer, [], 5.0)(Question({"scores": torch.ones(3)}, [torch.ones(3)]))
    assert (1, set()) in calls
    assert (0, {"scores"}) in calls


# ---- what softmax and attention are, on the references


def numbers(low: float = -8.0, high: float = 8.0) -> st.SearchStrategy[float]:
    return st.floats(low, high, width=32)


@st.composite
def tensors(draw: st.DrawFn, *shape: int, size: float = 8.0) -> Tensor:
    count = math.prod(shape)
    entries = draw(st.lists(numbers(-size, size), min_size=count, max_size=count))
    return torch.tensor(entries, dtype=torch.float32).reshape(shape)


@st.composite
def scores_and_dim(draw: st.DrawFn, size: float = 8.0) -> tuple[Tensor, int]:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return draw(tensors(*shape, size=size)), draw(st.integers(-len(shape), len(shape) - 1))


@st.composite
def queries_keys_values(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    t, s, d, d_v = (draw(st.integers(1, 4)) for _ in range(4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shapes = [(*leading, t, d), (*leading, s, d), (*leading, s, d_v)]
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    return q, k, v


properties = settings(deadline=None, max_examples=60)


@properties
@given(scores_and_dim(size=1e4))
def test_softmax_gives_distributions_for_scores_of_any_size(given: tuple[Tensor, int]) -> None:
    scores, dim = given
    p = softmax(scores, dim)
    assert p.shape == scores.shape
    assert bool((p >= 0).all())
    torch.testing.assert_close(p.sum(dim), torch.ones_like(p.sum(dim)))


@properties
@given(scores_and_dim(), numbers())
def test_softmax_does_not_see_a_shift(given: tuple[Tensor, int], shift: float) -> None:
    scores, dim = given
    torch.testing.assert_close(
        softmax(scores + shift, dim), softmax(scores, dim), atol=1e-5, rtol=1e-4
    )


@properties
@given(scores_and_dim(), st.randoms())
def test_softmax_of_permuted_scores_is_permuted(given: tuple[Tensor, int], random: Any) -> None:
    scores, dim = given
    order = list(range(scores.shape[dim]))
    random.shuffle(order)
    index = torch.tensor(order)
    permuted = softmax(scores.index_select(dim, index), dim)
    torch.testing.assert_close(permuted, softmax(scores, dim).index_select(dim, index))


@properties
@given(tensors(5))
def test_softmax_keeps_the_order(scores: Tensor) -> None:
    order = scores.argsort()
    assert bool((softmax(scores)[order].diff() >= 0).all())


@properties
@given(tensors(5), st.sets(st.integers(0, 4), max_size=4))
def test_softmax_is_exactly_zero_at_minus_infinity(scores: Tensor, holes: set[int]) -> None:
    blocked = torch.tensor([place in holes for place in range(5)])
    p = softmax(scores.masked_fill(blocked, -math.inf))
    assert bool((p[blocked] == 0).all())
    torch.testing.assert_close(p[~blocked], softmax(scores[~blocked]))


@properties
@given(scores_and_dim(size=1e4))
def test_softmax_is_torchs_own(given: tuple[Tensor, int]) -> None:
    scores, dim = given
    torch.testing.assert_close(softmax(scores, dim), torch.softmax(scores, dim))


@properties
@given(queries_keys_values())
def test_attention_stays_within_the_values(given: tuple[Tensor, Tensor, Tensor]) -> None:
    q, k, v = given
    output, weights = attention(q, k, v)
    assert bool((output <= v.amax(-2, keepdim=True) + 1e-5).all())
    assert bool((output >= v.amin(-2, keepdim=True) - 1e-5).all())
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@properties
@given(queries_keys_values(), st.randoms())
def test_attention_does_not_see_the_order_of_keys(
    given: tuple[Tensor, Tensor, Tensor], random: Any
) -> None:
    q, k, v = given
    order = list(range(k.shape[-2]))
    random.shuffle(order)
    output, weights = attention(q, k, v)
    moved, moved_weights = attention(q, k[..., order, :], v[..., order, :])
    torch.testing.assert_close(moved, output, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(moved_weights, weights[..., order], atol=1e-5, rtol=1e-4)


@properties
@given(queries_keys_values(), st.randoms())
def test_attention_of_permuted_queries_is_permuted(
    given: tuple[Tensor, Tensor, Tensor], random: Any
) -> None:
    q, k, v = given
    order = list(range(q.shape[-2]))
    random.shuffle(order)
    for moved, straight in zip(attention(q[..., order, :], k, v), attention(q, k, v), strict=True):
        torch.testing.assert_close(moved, straight[..., order, :], atol=1e-5, rtol=1e-4)


@properties
@given(queries_keys_values())
def test_attention_and_its_gradients_are_torchs_own(given: tuple[Tensor, Tensor, Tensor]) -> None:
    inputs = [value.double().requires_grad_() for value in given]
    ours = attention(*inputs)[0]
    theirs = torch.nn.functional.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(ours, theirs)
    cotangent = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    pairs = zip(
        torch.autograd.grad(ours, inputs, cotangent),
        torch.autograd.grad(theirs, inputs, cotangent),
        strict=True,
    )
    for mine, other in pairs:
        torch.testing.assert_close(mine, other)


@properties
@given(queries_keys_values())
def test_self_attention_is_attention_of_projections(given: tuple[Tensor, Tensor, Tensor]) -> None:
    x, w = given[0], torch.eye(given[0].shape[-1])
    for mine, other in zip(self_attention(x, w, 2 * w, w), attention(x, 2 * x, x), strict=True):
        torch.testing.assert_close(mine, other)
    torch.testing.assert_close(attention_scores(x, x), attention_scores(x, x).mT)
