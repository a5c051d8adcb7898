"""Topic 02: what is asked about several heads, and what students get wrong in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

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
from autograder.exercises.self_attention import UNSCALED
from solutions import multi_head_attention as reference

# --- split_heads ---------------------------------------------------------------------------------


ALL_DIFFER = "all sizes different"
Sizes = tuple[str, list[int], tuple[int, int, int]]


def head_sizes(draw: Draw) -> Iterator[Sizes]:
    """Names, leading dimensions and (n_heads, seq, d_head): all different, all equal, and ones."""
    for count in range(3):
        leading, (n_heads, seq, d_head) = draw.shape(count, 3)
        name = leading_name(count)
        yield f"{name}, {ALL_DIFFER}", leading, (n_heads, seq, d_head)
        yield f"{name}, all sizes equal", leading, (3, 3, 3)
        yield f"{name}, one head", leading, (1, seq, d_head)
        yield f"{name}, one feature in each head", leading, (n_heads, seq, 1)
        yield f"{name}, one token", leading, (n_heads, 1, d_head)
    yield "a batch of one", [1], (4, 3, 2)
    yield f"{leading_name(3)}, {ALL_DIFFER}", [3, 1, 2], (4, 6, 5)


def module_sizes(draw: Draw) -> Iterator[Sizes]:
    """Fewer and smaller ones, for modules: their cases hold parameters as well."""
    for leading, (low, high) in [([], (2, 5)), ([2], (3, 6)), ([3, 2], (4, 6))]:
        n_heads, seq, d_head = draw.sizes(3, low, high)
        name = leading_name(len(leading))
        yield f"{name}, {ALL_DIFFER}", leading, (n_heads, seq, d_head)
    yield "all sizes equal", [3], (3, 3, 3)
    yield "one head", [2], (1, 3, 4)
    yield "one feature in each head", [], (5, 3, 1)
    yield "one token", [3], (2, 1, 4)
    yield "a batch of one", [1], (4, 3, 2)
    yield leading_name(3), [2, 1, 3], (2, 5, 4)


def split_cases(draw: Draw) -> Iterator[Posed]:
    for name, leading, (n_heads, seq, d_head) in head_sizes(draw):
        x = draw.normal(*leading, seq, n_heads * d_head)
        yield Posed(name, {"x": x, "n_heads": n_heads}, len(leading))
        if name.endswith(ALL_DIFFER):
            again = {"x": draw.normal(*x.shape), "n_heads": n_heads}
            yield Posed(f"{name}, other numbers", again, len(leading), telling=False)
    for n_heads, d_model in [(3, 8), (4, 6), (5, 3)]:
        x = draw.normal(2, 4, d_model)
        yield Posed(
            "heads that do not divide d_model", {"x": x, "n_heads": n_heads}, 1, raises=True
        )


def split_without_transpose(x: Tensor, n_heads: int) -> Tensor:
    *leading, seq, d_model = x.shape
    return x.reshape(*leading, n_heads, seq, d_model // n_heads)


def split_interleaved(x: Tensor, n_heads: int) -> Tensor:
    *leading, seq, d_model = x.shape
    return x.reshape(*leading, seq, d_model // n_heads, n_heads).movedim(-1, -3)


def _split_by_feature(x: Tensor, n_heads: int) -> Tensor:
    """Consecutive entries of the transposed matrix."""
    *leading, seq, d_model = x.shape
    return x.mT.reshape(*leading, n_heads, seq, d_model // n_heads)


def _split_left_in_place(x: Tensor, n_heads: int) -> Tensor:
    *leading, seq, d_model = x.shape
    return x.reshape(*leading, seq, n_heads, d_model // n_heads)


def _split_on_its_side(x: Tensor, n_heads: int) -> Tensor:
    return reference.split_heads(x, n_heads).mT


def _split_reversed(x: Tensor, n_heads: int) -> Tensor:
    return reference.split_heads(x, n_heads).flip(-3)


def _split_as_d_head(x: Tensor, n_heads: int) -> Tensor:
    """n_heads taken for the width of a head."""
    *leading, seq, d_model = x.shape
    return x.reshape(*leading, seq, d_model // n_heads, n_heads).transpose(-3, -2)


NO_TRANSPOSE = (
    "A reshape only puts the same sequence of numbers into other brackets: cut up straight into "
    "(heads, tokens, features), a head holds pieces of a few tokens instead of some features of "
    "all of them."
)
INTERLEAVED = (
    "feature f goes to head f mod n_heads. Head h holds consecutive features, h*d_head to "
    "(h+1)*d_head: in the reshape n_heads stands before d_head."
)

ANY_BATCH = (
    "Your code is right for one number of leading dimensions only. Take sizes from the end, "
    "`seq, d_model = x.shape[-2:]`, keep what stands in front, `*x.shape[:-2]`, in each reshape, "
    "and transpose by -3, -2."
)

SPLIT_HEADS = Exercise(
    id="split_heads",
    points=2,
    reference=reference.split_heads,
    cases=split_cases,
    outputs=["heads"],
    axes={"heads": ["head", "token", "feature"]},
    banned=["attention"],
    misconceptions=[
        Misconception(
            "no-transpose",
            f"{NO_TRANSPOSE} Reshape to (..., seq, n_heads, d_head), the order in which the "
            "numbers lie, and then exchange seq and n_heads with `.transpose(-3, -2)`.",
            [split_without_transpose, _split_by_feature, _split_left_in_place],
        ),
        Misconception(
            "interleaved",
            f"Your heads take turns: {INTERLEAVED}",
            [split_interleaved, _split_as_d_head],
        ),
        Misconception(
            "swapped-axes",
            "Tokens and features of each head are exchanged: the last two dimensions should be "
            "(seq, d_head). One transpose too many, or of the wrong two dimensions.",
            [_split_on_its_side],
        ),
        Misconception(
            "reversed",
            "Your heads stand in reverse order: head 0 holds the first features.",
            [_split_reversed],
        ),
    ],
)

# --- merge_heads ---------------------------------------------------------------------------------


def merge_cases(draw: Draw) -> Iterator[Posed]:
    """Contiguous tensors, and views as `split_heads` leaves them."""
    for name, leading, (n_heads, seq, d_head) in head_sizes(draw):
        lying = draw.normal(*leading, n_heads, seq, d_head)
        yield Posed(name, {"x": lying}, len(leading))
        view = draw.normal(*leading, seq, n_heads, d_head).transpose(-3, -2)
        traits = [] if view.is_contiguous() else ["view"]
        yield Posed(f"{name}, as split_heads leaves it", {"x": view}, len(leading), traits)


def merge_without_transpose(x: Tensor) -> Tensor:
    *leading, n_heads, seq, d_head = x.shape
    return x.reshape(*leading, seq, n_heads * d_head)


def merge_interleaved(x: Tensor) -> Tensor:
    return x.movedim(-3, -1).flatten(-2)  # (..., seq, d_head, n_heads) -> (..., seq, d_model)


def _merge_by_token(x: Tensor) -> Tensor:
    """The right matrix transposed."""
    return reference.merge_heads(x).mT


def _merge_reversed(x: Tensor) -> Tensor:
    return reference.merge_heads(x.flip(-3))


def _merge_viewing(x: Tensor) -> Tensor:
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).view(*leading, seq, n_heads * d_head)


def _merge_viewing_untransposed(x: Tensor) -> Tensor:
    *leading, n_heads, seq, d_head = x.shape
    return x.view(*leading, seq, n_heads * d_head)


MERGE_HEADS = Exercise(
    id="merge_heads",
    points=1,
    reference=reference.merge_heads,
    cases=merge_cases,
    outputs=["merged"],
    axes={"merged": ["token", "feature"]},
    banned=["attention"],
    sentences={"no-batch": ANY_BATCH},
    trait_diagnoses={"view": "view-crash"},
    misconceptions=[
        Misconception(
            "no-transpose",
            "The heads are not put side by side: without a transpose the numbers of one head fill "
            "the rows of several tokens. First bring the heads next to their features with "
            "`.transpose(-3, -2)`, then reshape to (..., seq, n_heads*d_head).",
            [merge_without_transpose, _merge_viewing_untransposed],
        ),
        Misconception(
            "interleaved",
            "The features of the heads take turns in your result. All features of head 0 come "
            "first, then all of head 1: in the reshape n_heads stands before d_head.",
            [merge_interleaved],
        ),
        Misconception(
            "view-crash",
            "Your `view` fails on a tensor whose entries do not lie in order in memory, as after a "
            "transpose. `.reshape` copies where it must; or put `.contiguous()` before the view.",
            [_merge_viewing],
        ),
        Misconception(
            "swapped-axes",
            "Your result is transposed: one row for each token, (..., seq, n_heads*d_head).",
            [_merge_by_token],
        ),
        Misconception(
            "reversed",
            "The heads are merged in reverse order: the features of head 0 come first.",
            [_merge_reversed],
        ),
    ],
)

# --- MultiHeadAttention --------------------------------------------------------------------------


class Attention(nn.Module):
    """The right module of topics 02 and 05 in parts, each of which a mistake may replace."""

    def __init__(self, d_model: int, n_heads: int, causal: bool = False) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads, self.causal = n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def parts(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, each (..., n_heads, seq, d_head)."""
        return [self.split(part) for part in self.ordered(self.qkv(x).chunk(3, dim=-1))]

    def ordered(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return parts

    def split(self, x: Tensor) -> Tensor:
        return reference.split_heads(x, self.n_heads)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / self.scale(q)

    def scale(self, q: Tensor) -> float:
        return math.sqrt(q.shape[-1])

    def masked(self, scores: Tensor) -> Tensor:
        if not self.causal:
            return scores
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)

    def shares(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def merge(self, x: Tensor) -> Tensor:
        return reference.merge_heads(x)

    def project(self, x: Tensor) -> Tensor:
        output: Tensor = self.out_proj(x)
        return output

    def forward(self, x: Tensor, need_weights: bool = False) -> Any:
        q, k, v = self.parts(x)
        weights = self.shares(self.masked(self.scores(q, k)))
        output = self.project(self.merge(weights @ v))
        return (output, weights) if need_weights else output


def but(base: type[nn.Module] = Attention, /, **parts: Callable[..., Any]) -> type[nn.Module]:
    """The module with some of its parts replaced."""
    return type(base.__name__, (base,), parts)


def attention_cases(draw: Draw) -> Iterator[Posed]:
    """A new module for each set of sizes, called again on other inputs, and in eval mode."""
    for name, leading, (n_heads, seq, d_head) in module_sizes(draw):
        d_model, count = n_heads * d_head, len(leading)
        setup = attention_setup(draw, d_model=d_model, n_heads=n_heads)
        first = Posed(name, {"x": draw.normal(*leading, seq, d_model)}, count, setup=setup)
        yield first
        if not name.endswith(ALL_DIFFER):
            continue
        if count:
            yield reversed_batch(first)
        same = {"x": draw.normal(*leading, seq, d_model)}
        yield once_more(first, f"{name}, called again", same)
        longer = {"x": draw.normal(*leading, seq + 3, d_model)}
        yield once_more(first, f"{name}, called again with more tokens", longer)
        same = {"x": draw.normal(*leading, seq, d_model)}
        yield once_more(first, f"{name}, in eval mode", same, evaluating=True)
    for n_heads, d_model in [(3, 8), (4, 6), (5, 3)]:
        yield must_not_build("heads that do not divide d_model", d_model=d_model, n_heads=n_heads)


def attention_setup(draw: Draw, **arguments: Any) -> Setup:
    return Setup(arguments, draw.parameters(Attention(**arguments)))


def _grouped(*order: int) -> Answer:
    """Each head's queries, keys and values next to one another."""

    def parts(self: Attention, x: Tensor) -> list[Tensor]:
        found = self.split(self.qkv(x)).chunk(3, dim=-1)
        return [found[place] for place in order]

    return but(parts=parts)


def _taking_turns(self: Attention, x: Tensor) -> list[Tensor]:
    """A query's, a key's, a value's feature, over and over."""
    return [self.split(part) for part in self.qkv(x).unflatten(-1, (-1, 3)).unbind(-1)]


def _attend_over_heads(self: Attention, x: Tensor, need_weights: bool = False) -> Any:
    """No transpose at all: each token's heads attend to one another."""
    q, k, v = (_split_left_in_place(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
    weights = self.shares(self.masked(self.scores(q, k)))
    output = self.project((weights @ v).flatten(-2))
    return (output, weights) if need_weights else output


def _one_head_for_all(self: Attention, x: Tensor, need_weights: bool = False) -> Any:
    """One head, whose weights are given out as those of each."""
    q, k, v = self.qkv(x).unsqueeze(-3).chunk(3, dim=-1)
    weights = self.shares(self.masked(self.scores(q, k)))
    output = self.project((weights @ v).squeeze(-3))
    return (output, weights.repeat_interleave(self.n_heads, -3)) if need_weights else output


def _without_values(self: Attention, x: Tensor) -> list[Tensor]:
    q, k, _ = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
    return [q, k, self.split(x)]


def _in_order(*order: int) -> type[nn.Module]:
    return but(ordered=lambda self, parts: tuple(parts[place] for place in order))


def _scaled(scale: Callable[[Any, Tensor], float]) -> type[nn.Module]:
    return but(scale=scale)


def _softmax_over(dim: int) -> type[nn.Module]:
    return but(shares=lambda self, scores: scores.softmax(dim))


_NOT_SPLIT = {"split": lambda self, x: split_without_transpose(x, self.n_heads)}
_NOT_MERGED = {"merge": lambda self, x: merge_without_transpose(x)}
_SPLIT_INTERLEAVED = {"split": lambda self, x: split_interleaved(x, self.n_heads)}
_MERGED_INTERLEAVED = {"merge": lambda self, x: merge_interleaved(x)}
_UNSPLIT: dict[str, Callable[..., Any]] = {
    "split": lambda self, x: x.unsqueeze(-3),
    "merge": lambda self, x: x.squeeze(-3),
}
_OTHER_ORDERS = [order for order in itertools.permutations(range(3)) if order != (0, 1, 2)]
_ONE_TWICE = [(0, 0, 2), (1, 1, 2), (0, 1, 1), (0, 2, 2), (0, 1, 0), (0, 0, 0)]

# The mistakes of this module that topic 05's can have as well.
OF_HEADS = [
    Misconception(
        "scaled-by-d-model",
        "You scale by sqrt(d_model). Each head's dot product runs over its own d_head features "
        "alone, so the scale is sqrt(d_head), d_head = d_model / n_heads.",
        [
            _scaled(lambda self, q: math.sqrt(q.shape[-1] * self.n_heads)),
            _scaled(lambda self, q: q.shape[-1] * self.n_heads),
        ],
    ),
    Misconception(
        "unscaled",
        f"Your weights are those of unscaled {UNSCALED} Here d is d_head.",
        [_scaled(lambda self, q: 1)],
    ),
    Misconception(
        "one-head",
        "Your module attends with all features at once, as one head. Split queries, keys and "
        "values into n_heads parts first, so that each head has weights of its own.",
        [
            but(**_UNSPLIT),
            but(scale=lambda self, q: math.sqrt(q.shape[-1] / self.n_heads), **_UNSPLIT),
            but(scale=lambda self, q: 1, **_UNSPLIT),
            but(forward=_one_head_for_all),
        ],
    ),
    Misconception(
        "qkv-order",
        "The output of `qkv` is cut up in another order: its first d_model features are all "
        "queries, the next all keys, the last all values (`chunk(3, dim=-1)`), and each of the "
        "three is split into heads after that.",
        [
            *(_in_order(*order) for order in _OTHER_ORDERS),
            *(_grouped(*order) for order in itertools.permutations(range(3))),
            but(parts=_taking_turns),
        ],
    ),
    Misconception(
        "no-transpose",
        f"Heads are split or merged without a transpose. {NO_TRANSPOSE} It takes a transpose at "
        "the split (after the reshape) and one at the merge (before it).",
        [
            but(**_NOT_SPLIT),
            but(**_NOT_MERGED),
            but(**_NOT_SPLIT, **_NOT_MERGED),
            but(forward=_attend_over_heads),
        ],
    ),
    Misconception(
        "interleaved",
        f"Your heads take turns at the split or at the merge: {INTERLEAVED}",
        [
            but(**_SPLIT_INTERLEAVED),
            but(**_MERGED_INTERLEAVED),
            but(**_SPLIT_INTERLEAVED, **_MERGED_INTERLEAVED),
        ],
    ),
    Misconception(
        "no-out-proj",
        "`out_proj` is missing at the end: it is what mixes the heads' results.",
        [but(project=lambda self, x: x)],
    ),
    Misconception(
        "softmax-over-queries",
        "Your softmax runs over the queries: the columns of the weights sum to 1, not the rows. "
        "Each query spreads a weight of 1 over the keys, which is the last dimension: dim=-1.",
        [_softmax_over(-2)],
    ),
    Misconception(
        "softmax-over-heads",
        "Your softmax runs over the heads, so that they compete for each key. In each head each "
        "query spreads a weight of 1 over the keys, which is the last dimension: dim=-1.",
        [_softmax_over(-3), _softmax_over(1)],
    ),
    Misconception(
        "scaled-by-d",
        "You divide by d_head. The standard deviation of a dot product grows as its root: divide "
        "by sqrt(d_head).",
        [_scaled(lambda self, q: q.shape[-1]), _scaled(lambda self, q: q.shape[-1] / 2)],
    ),
    Misconception(
        "multiplied",
        "You multiply the scores by sqrt(d_head) where you should divide: the softmax saturates.",
        [_scaled(lambda self, q: 1 / math.sqrt(q.shape[-1]))],
    ),
    Misconception(
        "scaled-by-heads",
        "You scale by the number of heads or its root. What makes dot products grow is the number "
        "of features that they sum over: divide by sqrt(d_head).",
        [
            _scaled(lambda self, q: math.sqrt(self.n_heads)),
            _scaled(lambda self, q: self.n_heads),
        ],
    ),
    Misconception(
        "scaled-by-seq",
        "You scale by the length of the sequence. What makes dot products grow is the number of "
        "features that they sum over: divide by sqrt(d_head).",
        [_scaled(lambda self, q: math.sqrt(q.shape[-2]))],
    ),
    Misconception(
        "no-softmax",
        "Your scores are used as weights: the softmax is missing.",
        [but(shares=lambda self, scores: scores)],
    ),
    Misconception(
        "softmax-twice",
        "Your weights have gone through a softmax twice, which makes them nearly equal.",
        [but(shares=lambda self, scores: scores.softmax(-1).softmax(-1))],
    ),
    Misconception(
        "one-part-twice",
        "Two of queries, keys and values are the same part of `qkv`'s output: its three thirds "
        "are the queries, the keys and the values, each used once.",
        [_in_order(*order) for order in _ONE_TWICE],
    ),
    Misconception(
        "no-value-projection",
        "Your heads average the input itself. What they average are the values, the last third "
        "of `qkv`'s output.",
        [but(parts=_without_values)],
    ),
]

MULTI_HEAD_ATTENTION = Exercise(
    id="MultiHeadAttention",
    points=5,
    reference=reference.MultiHeadAttention,
    cases=attention_cases,
    outputs=["output"],
    axes={"output": ["token", "feature"]},
    banned=["attention"],
    builds_on=["split_heads", "merge_heads"],
    sentences={"no-batch": ANY_BATCH},
    misconceptions=[
        *OF_HEADS,
        Misconception(
            "added-input",
            "You add the input to the result. That residual connection belongs to the block "
            "around the attention, not to the attention.",
            [but(forward=lambda self, x: x + Attention.forward(self, x))],
        ),
        Misconception(
            "causal",
            "Your tokens see only themselves and earlier ones. The mask is a later topic: here "
            "every token attends to all.",
            [but(__init__=lambda self, d, h: Attention.__init__(self, d, h, causal=True))],
        ),
    ],
)

TOPIC = Topic(
    "02_multi_head_attention", [SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD_ATTENTION], public_seed=2
)
