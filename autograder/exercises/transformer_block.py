"""Topic 04: what is asked about layer norm and the block, and what students get wrong in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from autograder.exercises.multi_head_attention import ALL_DIFFER, Attention, but
from autograder.exercises.posing import (
    Answer,
    Draw,
    Exercise,
    Misconception,
    Posed,
    Setup,
    Topic,
    leading_name,
    once_more,
    reversed_batch,
)
from autograder.student.evaluation import build_module
from solutions import transformer_block as reference

# --- layer_norm ----------------------------------------------------------------------------------


SMALL = 2.0**-7  # a spread beside which the default eps counts: its square is 6e-5


def layer_norm_cases(draw: Draw) -> Iterator[Posed]:
    """The default eps where it does not count and where it does, other eps, constant rows."""
    for count in range(3):
        *leading, d = draw.sizes(count + 1, 3, 6)
        name = leading_name(count)
        yield _normed(draw, f"{name}, {ALL_DIFFER}", _rows(draw, *leading, d))
        again = _normed(draw, f"{name}, the same sizes again", _rows(draw, *leading, d))
        small = _normed(draw, f"{name}, small rows", _rows(draw, *leading, d) * SMALL)
        constant = _normed(draw, f"{name}, constant rows", _constant_rows(draw, *leading))
        yield replace(again, telling=False)
        for posed in [small, constant, *_with_other_eps(draw, name, *leading, d)]:
            yield replace(posed, telling=count < 2)  # more only make the file large
    yield _normed(draw, "all sizes equal", _rows(draw, 3, 3))
    yield _normed(draw, "all sizes equal", _rows(draw, 4, 4, 4))
    yield _normed(draw, "one row", _rows(draw, 1, 5))
    yield _normed(draw, "a batch of one", _rows(draw, 1, 3, 6))
    leading = [2 + n for n in draw.permutation(3)]
    yield _normed(draw, f"{leading_name(3)}, {ALL_DIFFER}", _rows(draw, *leading, 5))


def _with_other_eps(draw: Draw, name: str, *shape: int) -> Iterator[Posed]:
    for eps in (0.1, 2.0):
        yield _normed(draw, f"{name}, another eps", _rows(draw, *shape), eps=eps)


def _normed(draw: Draw, name: str, x: Tensor, **eps: float) -> Posed:
    d = x.shape[-1]
    weight, bias = (2 * draw.signs(d) + draw.normal(d) / 2 for _ in range(2))
    return Posed(name, {"x": x, "weight": weight, "bias": bias, **eps}, x.ndim - 1)


def _rows(draw: Draw, *shape: int) -> Tensor:
    """Rows with a spread of about 1 and a mean of at most 5 times that.

    Few random numbers may lie close together by chance, far from 0: these stand at equal
    distances, but for a tenth of their spread, in random order.
    """
    *leading, d = shape
    order = [draw.permutation(d) for _ in range(math.prod(leading))]
    steps = (torch.tensor(order).reshape(shape) - (d - 1) / 2) / math.sqrt((d**2 - 1) / 12)
    return steps + draw.normal(*shape) / 10 + draw.normal(*leading, 1)


def _constant_rows(draw: Draw, *leading: int) -> Tensor:
    """Rows of 4 equal numbers each: only eps keeps them from 0 / 0.

    They are divided by 0.003, and rounding would show. But the mean of 4 numbers 1, 2 or 4 is exact
    however it is computed, and so are products with it.
    """
    sizes = torch.tensor([1.0, 2.0, 4.0])[draw.integers(0, 3, *leading, 1)]
    return (sizes * draw.signs(1)).expand(*leading, 4).contiguous()


def _mean(x: Tensor) -> Tensor:
    return x.mean(-1, keepdim=True)


def _variance(x: Tensor) -> Tensor:
    return x.var(-1, correction=0, keepdim=True)


def _unbiased(x: Tensor) -> Tensor:
    return x.var(-1, keepdim=True)


def _divided_by(spread: Callable[[Tensor, float], Tensor], centred: bool = True) -> Answer:
    """Something else for the root of variance + eps."""

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        return (x - _mean(x) if centred else x) / spread(x, eps) * weight + bias

    return layer_norm


def _over(dims: Callable[[int], Any]) -> Answer:
    """Mean and variance over other dimensions, which may depend on how many there are."""

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        along = dims(x.ndim)
        mean = x.mean(along, keepdim=True)
        variance = ((x - mean) ** 2).mean(along, keepdim=True)
        return (x - mean) / torch.sqrt(variance + eps) * weight + bias

    return layer_norm


def _along(dim: Any) -> Answer:
    return _over(lambda n: dim)


def _ending_in(affine: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Answer:
    """Something else for `normed * weight + bias`."""

    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        return affine((x - _mean(x)) / torch.sqrt(_variance(x) + eps), weight, bias)

    return layer_norm


def _with_fixed(fixed: float) -> Answer:
    return _divided_by(lambda x, eps: (_variance(x) + fixed).sqrt())


def _with_default(default: float) -> Answer:
    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = default) -> Tensor:
        return reference.layer_norm(x, weight, bias, eps)

    return layer_norm


def _minus_a_quotient(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return x - _mean(x) / torch.sqrt(_variance(x) + eps) * weight + bias


def _mean_divided(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return (x - _mean(x) / torch.sqrt(_variance(x) + eps)) * weight + bias


def _eps_after_the_quotient(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return (x - _mean(x)) / torch.sqrt(_variance(x)) + eps * weight + bias


LAYER_NORM = Exercise(
    id="layer_norm",
    points=3,
    reference=reference.layer_norm,
    cases=layer_norm_cases,
    outputs=["result"],
    axes={"result": ["feature"]},
    banned=["norm", "attention"],
    sentences={
        "raised": "Your code raised an exception. (Where shapes do not line up after a mean or a "
        "variance, `keepdim=True` keeps a dimension of size 1 in the place of the one that went.)",
        "no-batch": "Your code is right for one number of leading dimensions only. Mean and "
        "variance belong to each row: take them over dim=-1 with `keepdim=True`, so that they "
        "line up with x again, however many dimensions stand in front.",
    },
    misconceptions=[
        Misconception(
            "unbiased-variance",
            "You divide the squared deviations by d - 1, as `x.var(-1)` and `x.std(-1)` do unless "
            "told otherwise. Layer norm describes the row, it estimates nothing from it: divide by "
            "d, with `correction=0` (or `unbiased=False`).",
            [
                _divided_by(lambda x, eps: (_unbiased(x) + eps).sqrt()),
                _divided_by(lambda x, eps: _unbiased(x).sqrt() + eps),
                _divided_by(lambda x, eps: _unbiased(x).sqrt()),
                _divided_by(lambda x, eps: (_unbiased(x) + 1e-5).sqrt()),
            ],
        ),
        Misconception(
            "eps-outside",
            "Your eps is added to the standard deviation. It belongs inside the root, added to the "
            "variance: sqrt(variance + eps). Its root, 0.003 for the default, is then the least "
            "that is ever divided by.",
            [
                _divided_by(lambda x, eps: _variance(x).sqrt() + eps),
                _divided_by(lambda x, eps: _variance(x).sqrt() + 1e-5),
            ],
        ),
        Misconception(
            "eps-ignored",
            "Your result does not depend on eps as it should. Without it a constant row is 0 / 0; "
            "and it is the caller's to choose: divide by sqrt(variance + eps) with the argument "
            "itself, not with a number of your own.",
            [
                _divided_by(lambda x, eps: _variance(x).sqrt()),
                *map(_with_fixed, (1e-5, 1e-6, 1e-8, 1e-12)),
            ],
        ),
        Misconception(
            "wrong-dim",
            "You take the mean or the variance over the wrong dimension, or over several. Each row "
            "(each token) is normalised by itself, over its d features: dim=-1 for both.",
            [
                *map(_along, (0, 1, -2, (-2, -1), (0, 1))),
                _over(lambda n: tuple(range(n))),
                _over(lambda n: tuple(range(1, n))),
                _over(lambda n: tuple(range(n - 1))),
                _divided_by(lambda x, eps: (x.var(correction=0) + eps).sqrt()),
            ],
        ),
        Misconception(
            "no-affine",
            "Your result is normalised and no more: `weight` and `bias` are not used. (A line like "
            "`normed * weight + bias` alone changes nothing: return it.)",
            [_ending_in(lambda normed, weight, bias: normed)],
        ),
        Misconception(
            "no-mean",
            "You scale each row but do not centre it. Subtract the row's mean first; what is "
            "divided is x - mean. (Dividing x by its root mean square is another norm, RMSNorm.)",
            [
                _divided_by(lambda x, eps: (_variance(x) + eps).sqrt(), centred=False),
                _divided_by(lambda x, eps: (_mean(x**2) + eps).sqrt(), centred=False),
            ],
        ),
        Misconception(
            "uncentred-variance",
            "Your variance is the mean of x², which is as large as the mean makes it. The variance "
            "is the mean of (x - mean)²: square the centred values.",
            [_divided_by(lambda x, eps: (_mean(x**2) + eps).sqrt())],
        ),
        Misconception(
            "summed-variance",
            "You sum the squared deviations where their mean is asked for: rows of d features come "
            "out sqrt(d) times too small. Divide the sum by d.",
            [
                _divided_by(lambda x, eps: (_variance(x) * x.shape[-1] + eps).sqrt()),
                _divided_by(lambda x, eps: (_variance(x) * x.shape[-1]).sqrt() + eps),
            ],
        ),
        Misconception(
            "no-root",
            "You divide by the variance. The spread of a row is its root, the standard deviation: "
            "divide by sqrt(variance + eps), and each row has a variance of 1.",
            [_divided_by(lambda x, eps: _variance(x) + eps)],
        ),
        Misconception(
            "eps-default",
            "Your eps has another default value: it is 1e-5 where the caller gives none.",
            [_with_default(default) for default in (1e-3, 1e-6, 1e-8, 1e-12)],
        ),
        Misconception(
            "half-affine",
            "One of `weight` and `bias` is missing in your result. The normalised row is first "
            "scaled, feature by feature, and then shifted: normed * weight + bias.",
            [
                _ending_in(lambda normed, weight, bias: normed * weight),
                _ending_in(lambda normed, weight, bias: normed + bias),
            ],
        ),
        Misconception(
            "affine-order",
            "`weight` and `bias` are not in their places. The normalised row is first scaled and "
            "then shifted: normed * weight + bias.",
            [
                _ending_in(lambda normed, weight, bias: (normed + bias) * weight),
                _ending_in(lambda normed, weight, bias: normed * bias + weight),
                _ending_in(lambda normed, weight, bias: normed * (1 + weight) + bias),
            ],
        ),
        Misconception(
            "missing-brackets",
            "A pair of brackets is missing: `/` and `*` come before `-` and `+`. It is "
            "(x - mean) / sqrt(variance + eps), and only then * weight + bias.",
            [_minus_a_quotient, _mean_divided, _eps_after_the_quotient],
        ),
    ],
)

# --- TransformerBlock ----------------------------------------------------------------------------


Part = Callable[[Tensor], Tensor]
# What one half of the block gives, of the tensor that is added to, the one that is read (the same,
# where nothing is wrong), attention or feed-forward, and the norm.
Half = Callable[[Tensor, Tensor, Part, Part], Tensor]


def post(x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
    return norm(x + part(read))


def pre(x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
    return x + part(norm(read))


class Block(nn.Module):
    """The right block of topics 04 and 05 in parts, each of which a mistake may replace."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attn = Attention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def join(self, x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
        return (pre if self.norm_first else post)(x, read, part, norm)

    def first(self, x: Tensor) -> Tensor:
        return self.join(x, x, self.attn, self.norm1)

    def second(self, x: Tensor, start: Tensor) -> Tensor:
        """From the first half's result `x`; the block's input is there for mistakes."""
        return self.join(x, x, self.feed, self.norm2)

    def feed(self, x: Tensor) -> Tensor:
        return self.narrow(self.activate(self.ff[0](x)))

    def activate(self, x: Tensor) -> Tensor:
        output: Tensor = self.ff[1](x)
        return output

    def narrow(self, x: Tensor) -> Tensor:
        """(..., d_ff) -> (..., d_model)."""
        output: Tensor = self.ff[2](x)
        return output

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x), x)


BlockSizes = tuple[str, list[int], tuple[int, int, int, int]]


def block_sizes(draw: Draw) -> Iterator[BlockSizes]:
    """Names, leading dimensions and (n_heads, seq, d_head, d_ff); d_model is 3 at least."""
    leading: list[int]
    for leading, two in [([], (2, 3)), ([2], (3, 4)), ([3, 2], (4, 2))]:
        n_heads, d_head = (two[place] for place in draw.permutation(2))
        seq, d_ff = [5, 7][draw.permutation(2)[0]], draw.sizes(1, 9, 11)[0]
        name = f"{leading_name(len(leading))}, {ALL_DIFFER}"
        yield name, leading, (n_heads, seq, d_head, d_ff)
    yield "all sizes equal", [3], (3, 3, 3, 3)
    yield "one head", [2], (1, 3, 4, 5)
    yield "one feature in each head", [], (5, 3, 1, 2)
    yield "one token", [3], (2, 1, 4, 3)
    yield "one hidden feature", [], (2, 4, 3, 1)
    yield "a batch of one", [1], (4, 3, 2, 5)
    yield leading_name(3), [2, 1, 3], (2, 5, 4, 3)


def block_cases(draw: Draw) -> Iterator[Posed]:
    """Post-norm by default and by name, in turns."""
    for number, sizes in enumerate(block_sizes(draw)):
        yield from calls_of(draw, Block, sizes, **({"norm_first": False} if number % 2 else {}))


def norm_first_cases(draw: Draw) -> Iterator[Posed]:
    for sizes in block_sizes(draw):
        yield from calls_of(draw, Block, sizes, norm_first=True)


def calls_of(draw: Draw, block: type[nn.Module], sizes: BlockSizes, **more: Any) -> Iterator[Posed]:
    """A new block of these sizes, called again on other inputs, and in eval mode."""
    name, leading, (n_heads, seq, d_head, d_ff) = sizes
    d_model = n_heads * d_head
    arguments = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, **more}
    setup = Setup(arguments, draw.parameters(block(**arguments)))

    def tokens(count: int) -> dict[str, Any]:
        while True:
            x = draw.normal(*leading, count, d_model)
            if is_clear(build_module(block, setup, in_double=True), x.double()):
                return {"x": x}

    telling = len(leading) < 2  # more only make the file large
    first = Posed(name, tokens(seq), len(leading), setup=setup, telling=telling)
    yield first
    if not name.endswith(ALL_DIFFER):
        return
    if leading:
        yield reversed_batch(first)
    yield once_more(first, f"{name}, called again", tokens(seq))
    yield once_more(first, f"{name}, called again with more tokens", tokens(seq + 3))
    yield once_more(first, f"{name}, in eval mode", tokens(seq), evaluating=True)


def is_clear(module: nn.Module, x: Tensor) -> bool:
    """Whether float32 can tell right from wrong on this input of a module that is built for it.

    Each norm is given rows with a spread that is neither small nor far below their mean, and no
    number is so near to the kink of a ReLU that rounding decides whether a gradient passes.
    """
    normed: list[Tensor] = []
    rectified: list[Tensor] = []
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            part.register_forward_pre_hook(lambda _, given: normed.extend(given))
        if isinstance(part, nn.ReLU):
            part.register_forward_pre_hook(lambda _, given: rectified.extend(given))
    with torch.no_grad():
        module(x)
    spreads = [(rows.std(-1, correction=0), rows.mean(-1).abs()) for rows in normed]
    return all(
        bool((spread > 0.3).all() and (mean < 3 * spread).all()) for spread, mean in spreads
    ) and all(bool((numbers.abs() > 1e-4).all()) for numbers in rectified)


def halves(first: Half, second: Half, base: type[nn.Module] = Block) -> type[nn.Module]:
    """The block with other formulas for its two halves."""
    return but(
        base,
        first=lambda self, x: first(x, x, self.attn, self.norm1),
        second=lambda self, x, start: second(x, x, self.feed, self.norm2),
    )


def either(right: Half, wrong: Half, base: type[nn.Module] = Block) -> list[Answer]:
    """A wrong formula in both halves, in the first, in the second."""
    return [halves(wrong, wrong, base), halves(wrong, right, base), halves(right, wrong, base)]


def without_residual(right: Half) -> Half:
    return lambda x, read, part, norm: right(torch.zeros_like(x), read, part, norm)


def norm_before_add(x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
    return x + norm(part(read))


def residual_from_norm(x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
    return norm(x) + part(norm(read))


def without_norm(x: Tensor, read: Tensor, part: Part, norm: Part) -> Tensor:
    return x + part(read)


# Two norms in one half: both forms at once, and each with a norm before the sum.
TWO_NORMS: list[Half] = [
    lambda x, read, part, norm: norm(x + part(norm(read))),
    lambda x, read, part, norm: norm(x + norm(part(read))),
    lambda x, read, part, norm: x + norm(part(norm(read))),
]


OTHER_ACTIVATIONS: list[Part] = [
    functional.gelu,
    lambda x: functional.gelu(x, approximate="tanh"),
    functional.silu,
    functional.leaky_relu,
    functional.elu,
    torch.tanh,
    torch.sigmoid,
]


def _with_norms(first: str, second: str) -> type[nn.Module]:
    """Norms by name, for the first half and for the second."""
    return but(
        Block,
        first=lambda self, x: self.join(x, x, self.attn, getattr(self, first)),
        second=lambda self, x, start: self.join(x, x, self.feed, getattr(self, second)),
    )


def _feeding_first(first: str, second: str) -> type[nn.Module]:
    """Feed-forward before attention."""
    return but(
        Block,
        first=lambda self, x: self.join(x, x, self.feed, getattr(self, first)),
        second=lambda self, x, start: self.join(x, x, self.attn, getattr(self, second)),
    )


def _joining(tensors: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> type[nn.Module]:
    """Other tensors to add to and to read in the second half, of its input and the block's."""
    return but(
        Block,
        second=lambda self, x, start: self.join(*tensors(x, start), self.feed, self.norm2),
    )


def _activated(activation: Part) -> type[nn.Module]:
    return but(Block, activate=lambda self, x: activation(x))


def _pre_by_default(self: Any, d: int, h: int, f: int, norm_first: bool = True) -> None:
    Block.__init__(self, d, h, f, norm_first)


def mistakes_around(right: Half, formula: str, bare: list[Answer]) -> list[Misconception]:
    """What goes wrong in post-norm and in pre-norm alike; `bare` blocks miss a norm."""
    alone = without_residual(right)
    return [
        Misconception(
            "no-residual",
            "Nothing is added to what attention and feed-forward give. Each of them computes a "
            f"change, and the change is added to what was there: {formula}. Along these sums "
            "gradients reach the first of many blocks.",
            [halves(alone, alone)],
        ),
        Misconception(
            "no-residual-attn",
            "The block's input is not added to what the attention gives, so a token keeps nothing "
            f"of itself but what it attends to: {formula}.",
            [halves(alone, right)],
        ),
        Misconception(
            "no-residual-ff",
            "Nothing is added to what the feed-forward network gives. It has a residual connection "
            f"as the attention has: {formula}.",
            [halves(right, alone)],
        ),
        Misconception(
            "norm-before-add",
            "You normalise what attention or feed-forward gives before it is added. Neither form "
            f"does that. Post-norm normalises the sum: {POST_NORM}. Pre-norm normalises what is "
            f"read: {PRE_NORM}.",
            either(right, norm_before_add),
        ),
        Misconception(
            "shared-norm",
            "One norm serves both halves. norm1 and norm2 are two modules with weights of their "
            "own: norm1 goes with the attention, norm2 with the feed-forward network.",
            [_with_norms("norm1", "norm1"), _with_norms("norm2", "norm2")],
        ),
        Misconception(
            "ff-reads-input",
            "Your feed-forward network reads the block's input. It comes after the attention and "
            f"reads what the first half gave: {formula}.",
            [_joining(lambda x, start: (x, start)), _joining(lambda x, start: (start, start))],
        ),
        Misconception(
            "no-activation",
            "There is no activation in your feed-forward network. Two linear layers one after the "
            "other are no more than one: between them stands a ReLU.",
            [_activated(lambda x: x)],
        ),
        Misconception(
            "norms-exchanged",
            "The norms are exchanged: norm1 goes with the attention, norm2 with the feed-forward "
            "network.",
            [_with_norms("norm2", "norm1")],
        ),
        Misconception(
            "missing-norm",
            f"A norm is missing, or its result is not used. Each half has one: {formula}.",
            bare,
        ),
        Misconception(
            "residual-from-input",
            "You add the block's input a second time. What the feed-forward network gives is added "
            f"to what the first half gave: {formula}.",
            [_joining(lambda x, start: (start, x))],
        ),
        Misconception(
            "wrong-activation",
            "The activation of your feed-forward network is not the one asked for: one ReLU, "
            "between the two linear layers and nowhere else.",
            [
                *map(_activated, OTHER_ACTIVATIONS),
                but(Block, narrow=lambda self, x: self.ff[2](x).relu()),
                but(Block, activate=lambda self, x: x, narrow=lambda self, x: self.ff[2](x).relu()),
            ],
        ),
        Misconception(
            "extra-norm",
            f"You normalise more often than asked for. Each half has one norm: {formula}.",
            [variant for wrong in TWO_NORMS for variant in either(right, wrong)],
        ),
        Misconception(
            "ff-first",
            "Your feed-forward network comes before the attention. First the tokens exchange what "
            f"they know, then each is worked on by itself: {formula}.",
            [_feeding_first("norm1", "norm2"), _feeding_first("norm2", "norm1")],
        ),
    ]


POST_NORM = "x = norm1(x + attn(x)), then x = norm2(x + ff(x))"
PRE_NORM = "x = x + attn(norm1(x)), then x = x + ff(norm2(x))"

TRANSFORMER_BLOCK = Exercise(
    id="TransformerBlock",
    points=4,
    reference=reference.TransformerBlock,
    cases=block_cases,
    outputs=["output"],
    axes={"output": ["token", "feature"]},
    banned=["attention"],
    misconceptions=[
        Misconception(
            "norm-order",
            "Yours is pre-norm where post-norm is asked for, at least in one half. Without "
            f"norm_first, which is False by default, the sum is what is normalised: {POST_NORM}.",
            [*either(post, pre), but(Block, __init__=_pre_by_default)],
        ),
        Misconception(
            "missing-last-norm",
            "The last norm is missing, or its result is not used: what the block returns is "
            "norm2(x + ff(x)).",
            [halves(post, without_norm)],
        ),
        *mistakes_around(
            post, POST_NORM, [halves(without_norm, without_norm), halves(without_norm, post)]
        ),
    ],
)

NORM_FIRST = Exercise(
    id="TransformerBlock.norm_first",
    points=2,
    reference=reference.TransformerBlock,
    cases=norm_first_cases,
    outputs=["output"],
    axes={"output": ["token", "feature"]},
    banned=["attention"],
    misconceptions=[
        Misconception(
            "norm-order",
            "Yours is post-norm where pre-norm is asked for, at least in one half. With "
            f"norm_first=True what is read is normalised, not the sum: {PRE_NORM}.",
            either(pre, post),
        ),
        Misconception(
            "residual-from-norm",
            "You add to the normed values: x was overwritten with norm(x). In pre-norm the sum "
            f"runs past the norms, on x as it came: {PRE_NORM}. What is normalised is only read.",
            either(pre, residual_from_norm),
        ),
        *mistakes_around(pre, PRE_NORM, either(pre, without_norm)),
    ],
)

TOPIC = Topic("04_transformer_block", [LAYER_NORM, TRANSFORMER_BLOCK, NORM_FIRST], public_seed=4)
