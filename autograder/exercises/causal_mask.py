"""Topic 05: what is asked about not seeing the future, and how it leaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.multi_head_attention import (
    ALL_DIFFER,
    ANY_BATCH,
    OF_HEADS,
    Attention,
    attention_setup,
    but,
    module_sizes,
)
from autograder.exercises.posing import (
    Answer,
    Draw,
    Exercise,
    Misconception,
    Posed,
    Setup,
    Topic,
    leading_name,
    must_not_build,
    once_more,
    reversed_batch,
)
from autograder.exercises.transformer_block import (
    POST_NORM,
    Block,
    block_sizes,
    calls_of,
    either,
    halves,
    mistakes_around,
    post,
    pre,
    without_norm,
)
from solutions import causal_mask as reference

# --- causal_mask ---------------------------------------------------------------------------------


def mask_cases(draw: Draw) -> Iterator[Posed]:
    for seq_len in [4, 1, 2, *draw.sizes(3, 5, 12), 4, 33]:
        yield Posed(f"{seq_len} token{'s' if seq_len > 1 else ''}", {"seq_len": seq_len})
    for seq_len in (130, 520):  # longer than what is made once and cut to size
        sums = ["allowed in each column", "allowed in each row"]
        yield Posed(
            f"{seq_len} tokens", {"seq_len": seq_len}, probe="sums", outputs=sums, telling=False
        )


def _triangle(change: Callable[[Tensor], Tensor]) -> Answer:
    """A mask made from the square of ones."""

    def causal_mask(seq_len: int) -> Tensor:
        return change(torch.ones(seq_len, seq_len, dtype=torch.bool))

    return causal_mask


def _additive(seq_len: int) -> Tensor:
    return torch.full((seq_len, seq_len), -math.inf).triu(1)


CAUSAL_MASK = Exercise(
    id="causal_mask",
    points=2,
    reference=reference.causal_mask,
    cases=mask_cases,
    outputs=["mask"],
    axes={"mask": ["row", "column"]},
    banned=["attention"],
    misconceptions=[
        Misconception(
            "strict",
            "Your diagonal is blocked: a position may attend to itself. Without it the first row "
            "allows nothing at all, and its softmax is NaN. What is allowed is j <= i.",
            [_triangle(lambda ones: ones.tril(-1))],
        ),
        Misconception(
            "inverted",
            "Your mask is True where attention is blocked. Here, as in torch's boolean "
            "`attn_mask`, True means allowed. (`nn.MultiheadAttention` has it the other way.)",
            [_triangle(lambda ones: ones.triu(1))],
        ),
        Misconception(
            "transposed",
            "Your positions attend to themselves and the future. Row i is the one that attends: "
            "it may look at columns j <= i, the lower triangle (`tril`).",
            [_triangle(lambda ones: ones.triu())],
        ),
        Misconception(
            "no-mask",
            "Your mask allows everything. Row i may look at columns j <= i alone.",
            [_triangle(lambda ones: ones)],
        ),
        Misconception(
            "additive",
            "Your mask is the kind that is added to scores, 0 and -inf. Asked for are booleans, "
            "True where attention is allowed; `mask_scores` makes -inf of the rest.",
            [_additive],
        ),
        Misconception(
            "off-by-one",
            "Your positions see one token too many: row i may look at columns j <= i.",
            [_triangle(lambda ones: ones.tril(1))],
        ),
    ],
)

# --- mask_scores ---------------------------------------------------------------------------------


def scores_cases(draw: Draw) -> Iterator[Posed]:
    """Masks of the scores' own shape and such as broadcast; all, some and none allowed."""
    for count in range(3):
        leading, (t, s) = draw.shape(count, 2)
        name = leading_name(count)
        masks = {
            "a mask for all of them": _mask(draw, t, s),
            "a mask of keys": _mask(draw, s),
            "a mask of the same shape": _mask(draw, *leading, t, s),
            "everything allowed": torch.ones(t, s, dtype=torch.bool),
            "nothing allowed": torch.zeros(t, s, dtype=torch.bool),
        }
        if count == 2:
            masks["a mask of keys for each sequence"] = _mask(draw, leading[0], 1, 1, s)
        for kind, mask in masks.items():
            yield _masked(draw, f"{name}, {kind}", leading, (t, s), mask)
    yield _masked(draw, "one score", [], (1, 1), _mask(draw, 1, 1))
    yield _masked(draw, "all sizes equal", [3], (3, 3), _mask(draw, 3, 3))
    yield _masked(draw, "a batch of one", [1], (4, 3), _mask(draw, 4, 3))
    yield _masked(draw, leading_name(3), [3, 1, 2], (4, 5), _mask(draw, 4, 5))


def _mask(draw: Draw, *shape: int) -> Tensor:
    """Some allowed, some not; where there are several entries, both occur."""
    mask = draw.normal(*shape) > 0
    flat = mask.view(-1)
    flat[0] = True
    flat[-1] = flat.numel() == 1
    return mask


def _masked(
    draw: Draw, name: str, leading: list[int], size: tuple[int, int], mask: Tensor
) -> Posed:
    scores = draw.normal(*leading, *size) * 2
    blocked = (~mask).expand(scores.shape)
    # A score of 0 is a score like any other, and not a place that was masked.
    scores = scores.masked_fill(draw.normal(*scores.shape) > 1, 0.0)
    return Posed(
        name,
        {"scores": scores, "mask": mask},
        len(leading),
        exact=[blocked],
        cotangents=[draw.normal(*scores.shape).masked_fill(blocked, 0.0)],
        free_gradients={"scores": blocked.contiguous()},
    )


def _filled(value: float) -> Answer:
    return lambda scores, mask: scores.masked_fill(~mask, value)


def _filled_where_allowed(value: float) -> Answer:
    return lambda scores, mask: scores.masked_fill(mask, value)


_LARGE = [-1e9, -1e10, -1e8, -1e20, -1e30, -1e12, -9e15, -1e6, -1e5, -1e4, -1e3, -100.0]
_LEAST = torch.finfo(torch.float32).min

MASK_SCORES = Exercise(
    id="mask_scores",
    points=1,
    reference=reference.mask_scores,
    cases=scores_cases,
    outputs=["scores"],
    axes={"scores": ["query", "key"]},
    banned=["attention"],
    misconceptions=[
        Misconception(
            "inverted",
            "You mask what is allowed. True means allowed: it is where the mask is False that "
            "-inf belongs (`masked_fill` fills where its argument is True, so invert it: `~mask`).",
            [_filled_where_allowed(value) for value in (-math.inf, -1e9, 0.0)],
        ),
        Misconception(
            "zero-fill",
            "You put 0 where attention is blocked. A score of 0 is no small score: exp(0) is 1, "
            "and softmax gives such keys a share. Only -inf gives exactly 0.",
            [_filled(0.0)],
        ),
        Misconception(
            "large-negative",
            "You put a large negative number where attention is blocked. Asked for is exactly "
            "-inf: a finite number depends on how large the other scores are, and a row of them "
            "alone looks like a row of equal scores.",
            [*(_filled(value) for value in _LARGE), _filled(_LEAST)],
        ),
        Misconception(
            "positive-infinity",
            "You put +inf where attention is blocked, which draws all of it there. It is -inf.",
            [_filled(math.inf)],
        ),
        Misconception(
            "unmasked",
            "Your scores are as they were: nothing is masked. (`masked_fill` gives a new tensor; "
            "its result must be returned.)",
            [lambda scores, mask: scores],
        ),
        Misconception(
            "mask-added",
            "The mask's zeros and ones are added to the scores. Blocked entries must become -inf.",
            [
                lambda scores, mask: scores + mask,
                lambda scores, mask: scores + (~mask),
            ],
        ),
    ],
)

# --- MultiHeadAttention --------------------------------------------------------------------------

LEAK = "leak"  # the trait of cases in which what is later must change nothing at all
PAIR = ["output", "weights"]


def attention_cases(draw: Draw) -> Iterator[Posed]:
    for name, leading, (n_heads, seq, d_head) in module_sizes(draw):
        d_model, count = n_heads * d_head, len(leading)

        def inputs(tokens: int = seq, front: list[int] = leading, d: int = d_model) -> Tensor:
            return draw.normal(*front, tokens, d)

        sizes = {"d_model": d_model, "n_heads": n_heads}
        causal = attention_setup(draw, **sizes, causal=True)
        few = count < 2  # the more dimensions, the larger the case; some need not be telling
        first = _with_weights(f"{name}, causal", causal, inputs())
        yield replace(first, telling=few)
        without = once_more(first, f"{name}, called again without weights", {"x": inputs()})
        yield replace(without, outputs=None, exact=[])
        if not name.endswith(ALL_DIFFER):
            continue
        free = replace(causal, arguments=sizes | {"causal": False})
        default = replace(causal, arguments=sizes)
        yield replace(_with_weights(f"{name}, not causal", free, inputs()), telling=few)
        by_default = Posed(f"{name}, no word on causal", {"x": inputs()}, count, setup=default)
        yield replace(by_default, telling=few)
        plain = Posed(f"{name}, causal, no weights", {"x": inputs()}, count, setup=causal)
        yield replace(plain, telling=few)
        if count == 1:
            yield reversed_batch(plain)
        yield from leaks(draw, name, causal, inputs)
        if count > 1:
            continue
        yield once_more(plain, f"{name}, called again with more tokens", {"x": inputs(seq + 2)})
        yield once_more(plain, f"{name}, called again with fewer", {"x": inputs(seq - 1)})
        evaluated = {"x": inputs(), "need_weights": False}
        yield once_more(plain, f"{name}, in eval mode", evaluated, evaluating=True)
    setup = attention_setup(draw, d_model=2, n_heads=2, causal=True)
    # Longer than a mask that is made once and cut to size.
    yield Posed("40 tokens", {"x": draw.normal(40, 2)}, setup=setup, telling=False)
    for n_heads, d_model in [(3, 8), (4, 6)]:
        yield must_not_build("heads that do not divide d_model", d_model=d_model, n_heads=n_heads)
    yield must_not_build(
        "heads that do not divide d_model, causal", d_model=7, n_heads=2, causal=True
    )


def _with_weights(name: str, setup: Setup, x: Tensor) -> Posed:
    """A call that asks for the weights; in a causal module they are 0 above the diagonal."""
    seq, n_heads = x.shape[-2], setup.arguments["n_heads"]
    future = torch.ones(*x.shape[:-2], n_heads, seq, seq, dtype=torch.bool).triu(1)
    return Posed(
        name,
        {"x": x, "need_weights": True},
        x.ndim - 2,
        setup=setup,
        outputs=PAIR,
        exact=[None, future if setup.arguments["causal"] else None],
    )


def leaks(draw: Draw, name: str, setup: Setup, inputs: Callable[..., Tensor]) -> Iterator[Posed]:
    """Later tokens changed, and the gradient by later tokens: earlier outputs know of neither."""
    x, other = inputs(), inputs()
    seq, count = x.shape[-2], x.ndim - 2
    for kept in sorted({1, seq - 1}):
        changed = torch.cat([x[..., :kept, :], other[..., kept:, :]], dim=-2)
        shape = [*x.shape[:-2], kept, x.shape[-1]]
        yield Posed(
            f"{name}, causal, tokens from {kept} on changed",
            {"x": x, "other": changed, "kept": kept},
            count,
            [LEAK],
            exact=[torch.ones(shape, dtype=torch.bool)],
            setup=setup,
            probe="change-of-the-past",
            outputs=["change of earlier outputs"],
            telling=False,
        )
    kept = max(1, seq // 2)
    later = (torch.arange(seq) >= kept).unsqueeze(-1).expand(x.shape)
    yield Posed(
        f"{name}, causal, gradient of the first {kept} outputs",
        {"x": x},
        count,
        [LEAK],
        setup=setup,
        cotangents=[draw.normal(*x.shape).masked_fill(later, 0.0)],
        exact_gradients={"x": later.contiguous()},
        telling=False,
    )


def _shares_then(change: Callable[[Tensor], Tensor]) -> type[nn.Module]:
    """The mask after the softmax."""

    def shares(self: Attention, scores: Tensor) -> Tensor:
        weights = scores.softmax(-1)
        return change(weights) if self.causal else weights

    return but(masked=lambda self, scores: scores, shares=shares)


def _masked_by(change: Callable[[Tensor], Tensor]) -> type[nn.Module]:
    """Another mask where the module is causal."""
    return but(masked=lambda self, scores: change(scores) if self.causal else scores)


def _filled_above(value: float, diagonal: int = 1) -> Callable[[Tensor], Tensor]:
    def fill(scores: Tensor) -> Tensor:
        above = torch.ones_like(scores, dtype=torch.bool).triu(diagonal)
        return scores.masked_fill(above, value)

    return fill


def _filled_below(diagonal: int) -> Callable[[Tensor], Tensor]:
    def fill(scores: Tensor) -> Tensor:
        below = torch.ones_like(scores, dtype=torch.bool).tril(diagonal)
        return scores.masked_fill(below, -math.inf)

    return fill


class _Returning(Attention):
    """Something else as weights."""

    def returned(self, scores: Tensor, weights: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor, need_weights: bool = False) -> Any:
        q, k, v = self.parts(x)
        scores = self.scores(q, k)
        weights = self.shares(self.masked(scores))
        output = self.project(self.merge(weights @ v))
        return (output, self.returned(scores, weights)) if need_weights else output


# What can be wrong with the mask inside the module; the block of this topic may have it as well.
OF_MASKS = [
    Misconception(
        "mask-after-softmax",
        "You mask the weights after the softmax: what the blocked keys had is missing, and the "
        "rows no longer sum to 1. Mask the scores, with -inf, before the softmax.",
        [_shares_then(torch.tril)],
    ),
    Misconception(
        "strict",
        "The diagonal is blocked as well, so the first token may attend to nothing: its row of "
        "-inf gives NaN. Each position may attend to itself.",
        [
            _masked_by(_filled_above(-math.inf, 0)),
            _masked_by(_filled_above(-1e9, 0)),
            but(
                masked=lambda self, scores: (
                    _filled_above(-math.inf, 0)(scores) if self.causal else scores
                ),
                shares=lambda self, scores: scores.softmax(-1).nan_to_num(0.0),
            ),
        ],
    ),
    Misconception(
        "transposed",
        "Your tokens attend to the future and not to the past. The entries above the diagonal "
        "(column j > row i) are the ones to block.",
        [_masked_by(_filled_below(-1)), _masked_by(_filled_below(0))],
    ),
    Misconception(
        "zero-fill",
        "Blocked scores are set to 0, and softmax gives them a share: exp(0) is 1. It takes -inf.",
        [_masked_by(_filled_above(0.0))],
    ),
    Misconception(
        "never-causal",
        "With causal=True your tokens still attend to later ones: no mask is applied. (Is the "
        "flag kept, passed on, and asked for in forward? Is the result of `masked_fill` used?)",
        [but(masked=lambda self, scores: scores)],
    ),
    Misconception(
        "always-causal",
        "Your mask is applied with causal=False as well. It depends on the flag.",
        [but(masked=lambda self, scores: _filled_above(-math.inf)(scores))],
    ),
    Misconception(
        "flag-inverted",
        "Your mask is applied with causal=False, and not with causal=True.",
        [
            but(
                masked=lambda self, scores: (
                    scores if self.causal else _filled_above(-math.inf)(scores)
                )
            )
        ],
    ),
    Misconception(
        "off-by-one",
        "Your tokens see one token of the future. Blocked is every column j > i: `triu(1)` of a "
        "square of ones, not `triu(2)`.",
        [_masked_by(_filled_above(-math.inf, 2))],
    ),
    Misconception(
        "small-negative",
        "Blocked scores get a number that is not small enough: softmax still gives them a share. "
        "It takes -inf.",
        [_masked_by(_filled_above(value)) for value in (-1.0, -2.0, -5.0, -10.0)],
    ),
]


def _with_finite_fill(dim: int) -> type[nn.Module]:
    """A softmax over a wrong dimension, which gives NaN with -inf, and numbers with -1e9."""
    return but(_masked_by(_filled_above(-1e9)), shares=lambda self, scores: scores.softmax(dim))


_MORE_VARIANTS: dict[str, list[Answer]] = {
    "softmax-over-heads": [_with_finite_fill(-3)],
    "softmax-over-queries": [_with_finite_fill(-2)],
    "no-softmax": [but(_masked_by(_filled_above(0.0)), shares=lambda self, scores: scores)],
}

FUTURE_LEAK = (
    "A later token still changes an earlier output, if only in the last digits. The scores of "
    "later tokens must be -inf before the softmax: weights that are cleared and divided by their "
    "sum afterwards have met the future already, as has anything else that is taken over the whole "
    "sequence."
)

MULTI_HEAD_ATTENTION = Exercise(
    id="MultiHeadAttention",
    points=4,
    reference=reference.MultiHeadAttention,
    cases=attention_cases,
    outputs=["output"],
    distributions=["weights"],
    axes={"weights": ["head", "query", "key"], "output": ["token", "feature"]},
    banned=["attention"],
    builds_on=["causal_mask", "mask_scores"],
    trait_diagnoses={LEAK: "future-leak"},
    sentences={"future-leak": FUTURE_LEAK, "no-batch": ANY_BATCH},
    misconceptions=[
        *OF_MASKS,
        *(
            replace(item, variants=[*item.variants, *_MORE_VARIANTS.get(item.slug, [])])
            for item in OF_HEADS
        ),
        Misconception(
            "averaged-weights",
            "Your weights are averaged over the heads. Asked for are those of each head, "
            "(..., n_heads, seq, seq).",
            [but(_Returning, returned=lambda self, scores, weights: weights.mean(-3))],
        ),
        Misconception(
            "raw-scores",
            "What you return as weights are scores. The weights are what softmax makes of the "
            "masked scores.",
            [
                but(_Returning, returned=lambda self, scores, weights: scores),
                but(_Returning, returned=lambda self, scores, weights: self.masked(scores)),
            ],
        ),
        Misconception(
            "unmasked-weights",
            "Your output is right, but the weights that you return know nothing of the mask. "
            "Return the weights that multiply the values.",
            [but(_Returning, returned=lambda self, scores, weights: scores.softmax(-1))],
        ),
    ],
)

# --- TransformerBlock ----------------------------------------------------------------------------


class CausalBlock(Block):
    """The post-norm block of topic 04 around this topic's attention."""

    attention: type[nn.Module] = Attention

    def __init__(self, d_model: int, n_heads: int, d_ff: int, causal: bool = False) -> None:
        super().__init__(d_model, n_heads, d_ff)
        self.attn = self.attention(d_model, n_heads, causal)  # type: ignore[assignment]


def block_cases(draw: Draw) -> Iterator[Posed]:
    """Causal, not causal and without a word on it in turns; then what must not leak."""
    others: list[dict[str, bool]] = [{"causal": False}, {}]
    for number, sizes in enumerate(list(block_sizes(draw))[:6]):
        yield from calls_of(draw, CausalBlock, sizes, causal=True)
        yield next(calls_of(draw, CausalBlock, sizes, **others[number % 2]))
    leading: list[int]
    for leading, seq in [([], 5), ([3], 4)]:
        sizes = ("", leading, (2, seq, 3, 7))
        first = next(calls_of(draw, CausalBlock, sizes, causal=True))
        assert first.setup is not None

        def inputs(front: list[int] = leading, tokens: int = seq) -> Tensor:
            return draw.normal(*front, tokens, 6)

        yield from leaks(draw, leading_name(len(leading)), first.setup, inputs)


def _around(misconception: Misconception) -> Misconception:
    """The same mistake in the attention inside the block."""
    variants: list[Answer] = [
        type("TransformerBlock", (CausalBlock,), {"attention": variant})
        for variant in misconception.variants
    ]
    return replace(misconception, variants=variants)


def _causal(variants: list[Answer]) -> list[Answer]:
    """Blocks of topic 04 with the constructor, and so the attention, of this topic."""
    return [
        type("TransformerBlock", (variant, CausalBlock), {"__init__": CausalBlock.__init__})
        for variant in variants
        if isinstance(variant, type)
    ]


_INSIDE = {"never-causal", "always-causal"}  # the flag is lost on the way
_NEVER, _ALWAYS = (item for item in OF_MASKS if item.slug in _INSIDE)

TRANSFORMER_BLOCK = Exercise(
    id="TransformerBlock",
    points=2,
    reference=reference.TransformerBlock,
    cases=block_cases,
    outputs=["output"],
    axes={"output": ["token", "feature"]},
    banned=["attention"],
    builds_on=["MultiHeadAttention"],
    trait_diagnoses={LEAK: "future-leak"},
    sentences={"future-leak": FUTURE_LEAK},
    misconceptions=[
        _around(
            replace(
                _NEVER,
                sentence="With causal=True the tokens of your block still attend to later ones: "
                "hand the flag on, `MultiHeadAttention(d_model, n_heads, causal)`.",
            )
        ),
        _around(
            replace(
                _ALWAYS,
                sentence="Your block is causal with causal=False as well: the attention inside "
                "must be causal when the block is, and only then.",
            )
        ),
        Misconception(
            "norm-order",
            "Yours is pre-norm where post-norm is asked for, at least in one half. The sum is what "
            f"is normalised: {POST_NORM}.",
            _causal(either(post, pre)),
        ),
        Misconception(
            "missing-last-norm",
            "The last norm is missing, or its result is not used: what the block returns is "
            "norm2(x + ff(x)).",
            _causal([halves(post, without_norm)]),
        ),
        *(
            replace(item, variants=_causal(item.variants))
            for item in mistakes_around(
                post, POST_NORM, [halves(without_norm, without_norm), halves(without_norm, post)]
            )
        ),
        *(_around(item) for item in OF_MASKS if item.slug not in _INSIDE),
    ],
)

TOPIC = Topic(
    "05_causal_mask",
    [CAUSAL_MASK, MASK_SCORES, MULTI_HEAD_ATTENTION, TRANSFORMER_BLOCK],
    public_seed=5,
)
