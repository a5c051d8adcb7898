"""Topic 01: what is asked about self-attention, and what students get wrong in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from autograder.exercises.posing import (
    Answer,
    Draw,
    Exercise,
    Misconception,
    Posed,
    Topic,
    leading_name,
)
from solutions import self_attention as reference

Pair = tuple[Tensor, Tensor]
LARGEST_SCORE = 1e4

# --- softmax -------------------------------------------------------------------------------------


def softmax_cases(draw: Draw) -> Iterator[Posed]:
    """Every number of dimensions, every dim; moderate, very large, and -inf entries in each."""
    for leading, dim in [(0, -1), (0, 0), (1, -1), (1, 0), (2, -1), (2, 1), (2, -3), (3, -2)]:
        shape = draw.sizes(leading + 1, 2, 6)
        kinds: list[tuple[str, list[str], Tensor]] = [
            ("scores of order 1", [], draw.normal(*shape) * 2)
        ]
        if leading < 3:
            kinds.append(("very large scores", ["large"], _large_scores(draw, shape, dim)))
            kinds.append(("some scores of -inf", ["minus-inf"], _holed_scores(draw, shape, dim)))
        for name, traits, scores in kinds:
            along_last = dim in (-1, leading)
            yield Posed(
                f"{name}, {leading + 1} dimension{'s' if leading else ''}",
                {"scores": scores} | ({} if dim == -1 else {"dim": dim}),
                leading,
                traits + ([] if along_last else ["dim"]),
                exact=[scores == -math.inf],
            )
    yield Posed("a slice of one entry", {"scores": draw.normal(3, 1)}, 1)
    # What is kept by shape from one call to the next shows where a shape comes twice.
    for name in ("three rows", "three other rows"):
        yield Posed(name, {"scores": draw.normal(3, 4)}, 1)
    yield Posed("one row", {"scores": draw.normal(1, 4)}, 1)
    yield Posed("a single entry", {"scores": draw.normal(1)}, 0)


def _large_scores(draw: Draw, shape: list[int], dim: int) -> Tensor:
    """Slices in which one entry dominates by far, at 1e4, near 0 or at -1e4, whatever their kind.

    The first slice spans 1e4 to -1e4, the next ones are all negative: a maximum that is not the
    slice's own either overflows or leaves nothing.
    """
    size = shape[dim]
    slices = math.prod(shape) // size
    rows = []
    for index in range(slices):
        steps = -torch.arange(size) / max(size - 1, 1)
        top, depth = [(1.0, 2.0), (-0.5, 0.5), (0.6, 0.2)][index % 3]
        row = LARGEST_SCORE * (top + depth * steps)
        rows.append(row[torch.tensor(draw.permutation(size))] + draw.normal(size))
    moved = [*shape]
    moved.append(moved.pop(dim))
    return torch.stack(rows).reshape(moved).movedim(-1, dim).contiguous()


def _holed_scores(draw: Draw, shape: list[int], dim: int) -> Tensor:
    """Scores with entries of -inf, and one finite entry at least in each slice."""
    scores = draw.normal(*shape)
    holes = draw.normal(*shape) > 0
    keep = draw.normal(*shape)
    holes &= keep < keep.amax(dim, keepdim=True)  # the slice's largest `keep` stays finite
    return scores.masked_fill(holes, -math.inf)


def _exp_over_sum(scores: Tensor, dim: int = -1) -> Tensor:
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


def _with_global_max(scores: Tensor, dim: int = -1) -> Tensor:
    return _exp_over_sum(scores - scores.max(), dim)


def _with_global_max_and_eps(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.max()).exp()
    return exponentials / (exponentials.sum(dim, keepdim=True) + 1e-9)


def _with_global_sum(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum()


def _all_global(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.max()).exp()
    return exponentials / exponentials.sum()


def _exp_over_global_sum(scores: Tensor, dim: int = -1) -> Tensor:
    return scores.exp() / scores.exp().sum()


def _along(fixed: int) -> Answer:
    """Softmax along one dimension, whatever `dim` says (the last where there are fewer)."""

    def softmax(scores: Tensor, dim: int = -1) -> Tensor:
        return reference.softmax(scores, fixed if -scores.ndim <= fixed < scores.ndim else -1)

    return softmax


def _with_default(default: int) -> Answer:
    """Softmax that heeds `dim`, and takes another dimension where none is given."""

    def softmax(scores: Tensor, dim: int = default) -> Tensor:
        return reference.softmax(scores, dim)

    return softmax


SOFTMAX = Exercise(
    id="softmax",
    points=3,
    reference=reference.softmax,
    cases=softmax_cases,
    outputs=["result"],
    banned=["softmax", "attention"],
    # A maximum along a wrong dimension fails on cases with both traits: `dim` is what is wrong.
    trait_diagnoses={"dim": "wrong-dim", "large": "unstable"},
    sentences={
        "raised": "Your code raised an exception. (Where shapes do not line up after a maximum or "
        "a sum, `keepdim=True` keeps a dimension of size 1 in the place of the one that went.)",
    },
    misconceptions=[
        Misconception(
            "unstable",
            "Your exponentials overflow: exp(89) is already inf in float32, and inf / inf is NaN. "
            "Subtract each slice's maximum along `dim` before exp: it changes nothing in the "
            "quotient, and no exponent is above 0 any more.",
            [_exp_over_sum],
        ),
        Misconception(
            "global-max",
            "You subtract one maximum of the whole tensor. A row that lies far below it underflows "
            "to 0 / 0. Each slice needs its own maximum: `scores.amax(dim, keepdim=True)`.",
            [_with_global_max, _with_global_max_and_eps],
        ),
        Misconception(
            "global-sum",
            "You divide by the sum over the whole tensor, so all entries together sum to 1. Each "
            "slice along `dim` is a distribution of its own: sum along `dim`, with keepdim=True.",
            [_with_global_sum, _all_global, _exp_over_global_sum],
        ),
        Misconception(
            "wrong-dim",
            "Your result does not depend on `dim` as it should: it normalises along another "
            "dimension. Pass `dim` on to every reduction (the maximum as well as the sum); its "
            "default is -1.",
            [
                *(_along(fixed) for fixed in (-1, 0, 1, -2)),
                *(_with_default(default) for default in (0, 1, -2)),
            ],
        ),
    ],
)

# --- attention_scores ----------------------------------------------------------------------------


def scores_cases(draw: Draw) -> Iterator[Posed]:
    for name, leading, (t, s, d, _) in _attention_sizes(draw):
        yield Posed(
            name,
            {"q": draw.normal(*leading, t, d), "k": draw.normal(*leading, s, d)},
            len(leading),
        )


def _attention_sizes(draw: Draw) -> Iterator[tuple[str, list[int], tuple[int, int, int, int]]]:
    """Names, leading dimensions and (t, s, d, d_v): all different, all equal, and ones.

    One set of sizes comes twice, for answers that keep something by shape between calls.
    """
    for count in range(3):
        leading, (t, s, d, d_v) = draw.shape(count, 4)
        name = leading_name(count)
        yield f"{name}, all sizes different", leading, (t, s, d, d_v)
        if count == 1:
            yield f"{name}, the same sizes again", leading, (t, s, d, d_v)
        yield f"{name}, all sizes equal", leading, (s, s, s, s)
        yield f"{name}, one query", leading, (1, s, d, d_v)
        yield f"{name}, one key", leading, (t, 1, d, d_v)
    yield "one feature", [], (4, 3, 1, 1)
    yield "a batch of one", [1], (3, 4, 5, 2)
    leading, (t, s, d, d_v) = _three_leading(draw)
    yield f"{leading_name(3)}, all sizes different", leading, (t, s, d, d_v)


def _three_leading(draw: Draw) -> tuple[list[int], list[int]]:
    """Sizes that all differ, and few matrices, for answers that loop over them in Python."""
    return [1 + n for n in draw.permutation(3)], draw.sizes(4, 4, 7)


def _scores_over(scale: Callable[[Tensor, Tensor], float]) -> Answer:
    def attention_scores(q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / scale(q, k)

    return attention_scores


def _transposed_scores(q: Tensor, k: Tensor) -> Tensor:
    return k @ q.mT / math.sqrt(q.shape[-1])


def _transposed_unscaled_scores(q: Tensor, k: Tensor) -> Tensor:
    return k @ q.mT


# Sequence lengths and their roots, counted from the end or from the front.
_SEQUENCE_SIZES: list[Callable[[Tensor, Tensor], float]] = [
    lambda q, k: math.sqrt(q.shape[-2]),
    lambda q, k: math.sqrt(k.shape[-2]),
    lambda q, k: math.sqrt(q.shape[0]),
    lambda q, k: math.sqrt(k.shape[0]),
    lambda q, k: q.shape[-2],
    lambda q, k: k.shape[-2],
]

UNSCALED = (
    "scores: the division by sqrt(d) is missing. A dot product of d unit-variance features has "
    "variance d; divided by sqrt(d) it has variance 1 again, whatever d is."
)
BY_D = (
    "scores divided by d. The standard deviation of a dot product grows as sqrt(d), not as d: "
    "divide by its square root. (Mind that d ** 1 / 2 is d / 2; d ** 0.5 is the root.)"
)

ATTENTION_SCORES = Exercise(
    id="attention_scores",
    points=2,
    reference=reference.attention_scores,
    cases=scores_cases,
    outputs=["scores"],
    banned=["attention"],
    misconceptions=[
        Misconception("unscaled", f"Yours are unscaled {UNSCALED}", [_scores_over(lambda q, k: 1)]),
        Misconception(
            "scaled-by-d",
            f"Yours are {BY_D}",
            [
                _scores_over(lambda q, k: q.shape[-1]),
                _scores_over(lambda q, k: q.shape[-1] / 2),
            ],
        ),
        Misconception(
            "multiplied",
            "You multiply by sqrt(d) where you should divide: the spread of the scores grows as d "
            "instead of staying at 1.",
            [_scores_over(lambda q, k: 1 / math.sqrt(q.shape[-1]))],
        ),
        Misconception(
            "scaled-by-seq",
            "You divide by a sequence length or its root. What makes dot products grow is the "
            "number of features that they sum over: d = q.shape[-1], counted from the end.",
            [_scores_over(size) for size in _SEQUENCE_SIZES],
        ),
        Misconception(
            "transposed",
            "Your scores are k qᵀ: one row for each key. There should be one row for each query "
            "and one column for each key: q @ k.transpose(-2, -1), shape (..., t, s).",
            [_transposed_scores, _transposed_unscaled_scores],
        ),
    ],
)

# --- attention -----------------------------------------------------------------------------------


def attention_cases(draw: Draw) -> Iterator[Posed]:
    for name, leading, (t, s, d, d_v) in _attention_sizes(draw):
        arguments = {
            "q": draw.normal(*leading, t, d),
            "k": draw.normal(*leading, s, d),
            "v": draw.normal(*leading, s, d_v),
        }
        yield Posed(name, arguments, len(leading))
    for leading in ([], [2], [2, 3]):
        yield Posed("very large scores", _large_attention(draw, leading), len(leading), ["large"])


def _large_attention(draw: Draw, leading: list[int]) -> dict[str, Tensor]:
    """Queries of which one finds its scores all large, one all very negative; no two are close.

    All entries are whole numbers and sqrt(d) is 2, so that the scores come out the same however
    they are computed: at 1e4 a rounding in the last place would already show in the weights.
    """
    t, s, d, d_v = 2, 3, 4, 5
    direction = draw.signs(d)
    lengths = torch.tensor(draw.permutation(s)) + 1.0
    k = (lengths.unsqueeze(-1) * direction).expand(*leading, s, d)
    size = LARGEST_SCORE // (s * math.sqrt(d))  # q kᵀ / sqrt(d) is at most LARGEST_SCORE
    q = (torch.tensor([[size], [-size]]) * direction).expand(*leading, t, d)
    return {
        "q": q + (draw.normal(*leading, t, d) * 3).round(),
        "k": k.contiguous(),
        "v": draw.normal(*leading, s, d_v),
    }


def _attend(scores: Tensor, v: Tensor) -> Pair:
    weights = scores.softmax(-1)
    return weights @ v, weights


def _attention_over(scale: Callable[[Tensor, Tensor, Tensor], float]) -> Answer:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Pair:
        return _attend(q @ k.mT / scale(q, k, v), v)

    return attention


def _of_queries_and_keys(
    size: Callable[[Tensor, Tensor], float],
) -> Callable[[Tensor, Tensor, Tensor], float]:
    return lambda q, k, v: size(q, k)


def _scaled_after(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    weights = (q @ k.mT).softmax(-1) / math.sqrt(q.shape[-1])
    return weights @ v, weights


def _softmax_over(dim: int) -> Answer:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Pair:
        weights = reference.attention_scores(q, k).softmax(dim)
        return weights @ v, weights

    return attention


def _raw_scores(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    scores = reference.attention_scores(q, k)
    return scores.softmax(-1) @ v, scores


def _raw_unscaled_scores(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    return reference.attention(q, k, v)[0], q @ k.mT


def _all_unscaled_raw_scores(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    scores = q @ k.mT
    return scores.softmax(-1) @ v, scores


def _no_softmax(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    scores = reference.attention_scores(q, k)
    return scores @ v, scores


def _no_softmax_unscaled(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    scores = q @ k.mT
    return scores @ v, scores


def _swapped_return(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    output, weights = reference.attention(q, k, v)
    return weights, output


def _unstable_attention(q: Tensor, k: Tensor, v: Tensor) -> Pair:
    weights = _exp_over_sum(reference.attention_scores(q, k))
    return weights @ v, weights


OVER_QUERIES = Misconception(
    "softmax-over-queries",
    "Your softmax runs over the queries: the columns of your weights sum to 1, not the rows. Each "
    "query spreads a weight of 1 over the keys, which is the last dimension: dim=-1.",
    [_softmax_over(-2), _softmax_over(0)],
)
UNSTABLE = Misconception(
    "unstable",
    "Your weights are right for moderate scores and go wrong for large ones: exp overflows above "
    "88, and is 0 far below the maximum. Subtract each row's "
    "maximum before exp, or use your `softmax` from above once it passes.",
    [_unstable_attention],
)
RAW_SCORES = Misconception(
    "raw-scores",
    "What you return as weights are scores: they are negative in places and their rows do not sum "
    "to 1. The weights are what softmax makes of the scores.",
    [
        _raw_scores,
        _raw_unscaled_scores,
        _all_unscaled_raw_scores,
        _no_softmax,
        _no_softmax_unscaled,
    ],
)
SWAPPED_RETURN = Misconception(
    "swapped-return",
    "You return (weights, output); asked for is (output, weights).",
    [_swapped_return],
)

BY_VALUE_DIM = Misconception(
    "scaled-by-value-dim",
    "You scale by the width of the values. The dot product runs over the features of queries and "
    "keys, so the scale is sqrt(d) with d = q.shape[-1].",
    [_attention_over(lambda q, k, v: math.sqrt(v.shape[-1]))],
)
BY_SEQ = Misconception(
    "scaled-by-seq",
    "You divide by a sequence length or its root. The scale is sqrt(d) with d = q.shape[-1], the "
    "number of features that the dot product sums over.",
    [_attention_over(_of_queries_and_keys(size)) for size in _SEQUENCE_SIZES],
)
MULTIPLIED = Misconception(
    "multiplied",
    "You multiply the scores by sqrt(d) where you should divide: the softmax saturates.",
    [_attention_over(lambda q, k, v: 1 / math.sqrt(q.shape[-1]))],
)
SCALED_AFTER = Misconception(
    "scaled-after-softmax",
    "You divide by sqrt(d) after the softmax, so the rows of your weights no longer sum to 1. It "
    "is the scores that are divided, before the softmax.",
    [_scaled_after],
)

ATTENTION = Exercise(
    id="attention",
    points=3,
    reference=reference.attention,
    cases=attention_cases,
    outputs=["output", "weights"],
    distributions=["weights"],
    banned=["attention"],
    builds_on=["softmax", "attention_scores"],
    trait_diagnoses={"large": "unstable"},
    misconceptions=[
        OVER_QUERIES,
        Misconception(
            "unscaled",
            f"Your weights are those of unscaled {UNSCALED}",
            [_attention_over(lambda q, k, v: 1)],
        ),
        Misconception(
            "scaled-by-d",
            f"Your weights are those of {BY_D}",
            [
                _attention_over(lambda q, k, v: q.shape[-1]),
                _attention_over(lambda q, k, v: q.shape[-1] / 2),
            ],
        ),
        BY_VALUE_DIM,
        BY_SEQ,
        MULTIPLIED,
        SCALED_AFTER,
        RAW_SCORES,
        SWAPPED_RETURN,
        UNSTABLE,
    ],
)

# --- self_attention ------------------------------------------------------------------------------


def self_attention_cases(draw: Draw) -> Iterator[Posed]:
    """d_model, d_head and d_v all different, equal, or one; scores of order 1, or very large."""
    for count in range(3):
        name = leading_name(count)
        leading, (seq, d_model, d_head, d_v) = draw.shape(count, 4)
        kinds = {
            "all sizes different": (seq, d_model, d_head, d_v),
            "d_model, d_head and d_v equal": (3, d_model, d_model, d_model),
            "d_head and d_v equal": (2, d_model, d_head, d_head),
            "one token": (1, d_model, d_head, d_v),
        }
        if count == 1:
            kinds["the same sizes again"] = kinds["all sizes different"]
        for kind, sizes in kinds.items():
            yield Posed(f"{name}, {kind}", _projected(draw, leading, *sizes), count)
        yield Posed(f"{name}, very large scores", _large_projected(draw, leading), count, ["large"])
    yield Posed("one feature in each head", _projected(draw, [], 4, 3, 1, 1), 0)
    yield Posed("a batch of one", _projected(draw, [1], 3, 4, 2, 5), 1)
    leading, (seq, d_model, d_head, d_v) = _three_leading(draw)
    arguments = _projected(draw, leading, seq, d_model, d_head, d_v)
    yield Posed(f"{leading_name(3)}, all sizes different", arguments, 3)


def _projected(
    draw: Draw, leading: list[int], seq: int, d_model: int, d_head: int, d_v: int
) -> dict[str, Tensor]:
    scale = 1 / math.sqrt(d_model)
    return {
        "x": draw.normal(*leading, seq, d_model),
        "w_q": draw.normal(d_model, d_head) * scale,
        "w_k": draw.normal(d_model, d_head) * scale,
        "w_v": draw.normal(d_model, d_v) * scale,
    }


def _large_projected(draw: Draw, leading: list[int]) -> dict[str, Tensor]:
    """Tokens along one direction, so that in every row one score dominates and the rows lie apart.

    The score of tokens i and j is proportional to the product of their lengths along it.
    """
    d_model, d_head, d_v = 4, 16, 2  # all whole numbers, and sqrt(d_head) is 4
    lengths = torch.tensor([3.0, 1.0, -2.0])[torch.tensor(draw.permutation(3))]
    direction, head = draw.signs(d_model), draw.signs(d_head)
    along = direction.unsqueeze(-1) * head / d_model  # direction @ along is head
    size = LARGEST_SCORE // (9 * math.sqrt(d_head))  # 9: the largest product of two lengths
    return {
        "x": (lengths.unsqueeze(-1) * direction).expand(*leading, 3, d_model).contiguous(),
        "w_q": along * size,
        "w_k": along,
        "w_v": draw.normal(d_model, d_v) / math.sqrt(d_model),
    }


def _with_roles(first: int, second: int, third: int) -> Answer:
    """Queries, keys and values taken from the projections in another order."""

    def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Pair:
        roles = (x @ w_q, x @ w_k, x @ w_v)
        return reference.attention(roles[first], roles[second], roles[third])

    return self_attention


def _without_projection(*missing: int) -> Answer:
    def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Pair:
        q, k, v = (x if i in missing else x @ w for i, w in enumerate((w_q, w_k, w_v)))
        return reference.attention(q, k, v)

    return self_attention


def _with_transposed(*transposed: int) -> Answer:
    def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Pair:
        q, k, v = (x @ (w.mT if i in transposed else w) for i, w in enumerate((w_q, w_k, w_v)))
        return reference.attention(q, k, v)

    return self_attention


def _projecting(attention: Answer) -> Answer:
    """self_attention on right projections with a wrong attention."""

    def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Pair:
        pair: Pair = attention(x @ w_q, x @ w_k, x @ w_v)
        return pair

    return self_attention


def _scaled_by_d_model(power: float) -> Answer:
    def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Pair:
        return _attend((x @ w_q) @ (x @ w_k).mT / x.shape[-1] ** power, x @ w_v)

    return self_attention


def _in_self_attention(misconception: Misconception) -> Misconception:
    variants = [_projecting(variant) for variant in misconception.variants]
    return Misconception(misconception.slug, misconception.sentence, variants)


_OTHER_ROLES = [roles for roles in itertools.permutations(range(3)) if roles != (0, 1, 2)]
_SUBSETS = [subset for n in (1, 2, 3) for subset in itertools.combinations(range(3), n)]

SELF_ATTENTION = Exercise(
    id="self_attention",
    points=2,
    reference=reference.self_attention,
    cases=self_attention_cases,
    outputs=["output", "weights"],
    distributions=["weights"],
    banned=["attention"],
    builds_on=["attention", "attention_scores", "softmax"],
    trait_diagnoses={"large": "unstable"},
    misconceptions=[
        Misconception(
            "swapped-roles",
            "Queries, keys and values are not in their places. Queries come from w_q and ask, keys "
            "come from w_k and are compared with, values come from w_v and are averaged: "
            "attention(x @ w_q, x @ w_k, x @ w_v).",
            [_with_roles(*roles) for roles in _OTHER_ROLES],
        ),
        Misconception(
            "no-value-projection",
            "Your output averages the tokens themselves. What is averaged are the values: x @ w_v.",
            [_without_projection(2)],
        ),
        Misconception(
            "transposed-weights",
            "You multiply by a transposed weight matrix. The weights here are (d_model, d_head), "
            "so a projection is x @ w as it stands; nn.Linear and F.linear keep theirs the other "
            "way round, (out, in).",
            [_with_transposed(*subset) for subset in _SUBSETS],
        ),
        Misconception(
            "scaled-by-d-model",
            "You scale by sqrt(d_model). The dot product runs over the d_head features of the "
            "projected queries and keys, so the scale is sqrt(d_head).",
            [_scaled_by_d_model(0.5), _scaled_by_d_model(1)],
        ),
        Misconception(
            "unscaled",
            f"Your weights are those of unscaled {UNSCALED}",
            [_projecting(_attention_over(lambda q, k, v: 1))],
        ),
        Misconception(
            "scaled-by-d",
            f"Your weights are those of {BY_D}",
            [
                _projecting(_attention_over(lambda q, k, v: q.shape[-1])),
                _projecting(_attention_over(lambda q, k, v: q.shape[-1] / 2)),
            ],
        ),
        _in_self_attention(OVER_QUERIES),
        Misconception(
            "no-projection",
            "Queries, keys or values are the tokens themselves: a projection is missing. Each of "
            "the three is x @ w with its own matrix.",
            [_without_projection(*subset) for subset in _SUBSETS if subset != (2,)],
        ),
        _in_self_attention(BY_VALUE_DIM),
        _in_self_attention(BY_SEQ),
        _in_self_attention(MULTIPLIED),
        _in_self_attention(SCALED_AFTER),
        _in_self_attention(RAW_SCORES),
        _in_self_attention(SWAPPED_RETURN),
        _in_self_attention(UNSTABLE),
    ],
)

TOPIC = Topic(
    "01_self_attention", [SOFTMAX, ATTENTION_SCORES, ATTENTION, SELF_ATTENTION], public_seed=42
)
