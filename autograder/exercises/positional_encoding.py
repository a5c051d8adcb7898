"""Topic 03: what is asked about positions, and what students get wrong in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from autograder.exercises.multi_head_attention import but
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
from solutions import positional_encoding as reference

# A sine is as exact as its angle. In float32 an angle of up to 128 is off by up to 1e-5, which is
# all of the tolerance, so long tables here have few features (all angles but the first feature's
# are small then), and wide ones few positions.
LONGEST = 100

# --- positional_encoding -------------------------------------------------------------------------


def encoding_cases(draw: Draw) -> Iterator[Posed]:
    """Even and odd widths, each beside a length that is not, ones, and equal sizes."""
    widths, lengths = draw.sizes(3, 2, 5), draw.sizes(3, 2, 4)
    sizes = [(2 * length + 1, 2 * pairs) for length, pairs in zip(lengths, widths, strict=True)]
    for seq_len, d_model in sizes:
        yield _posed_table("an even d_model", seq_len, d_model)
    widths, lengths = draw.sizes(3, 1, 4), draw.sizes(3, 2, 5)
    for length, pairs in zip(lengths, widths, strict=True):
        yield _posed_table("an odd d_model", 2 * length, 2 * pairs + 1)
    yield _posed_table("equal sizes", 4, 4)
    yield _posed_table("equal sizes", 5, 5)
    yield _posed_table("a single pair of features", 6, 2)
    yield _posed_table("a single feature", 7, 1)
    yield _posed_table("a single position", 1, 6)
    yield _posed_table("a single position", 1, 5)
    yield _posed_table("a single entry", 1, 1)
    # What is kept from one call to the next shows where one of the sizes comes again.
    seq_len, d_model = sizes[0]
    yield _posed_table("the same length, more features", seq_len, d_model + 2, telling=False)
    yield _posed_table("the same length, fewer features", seq_len, d_model - 2, telling=False)
    yield _posed_table("more positions, as many features", seq_len + 4, d_model, telling=False)
    yield _posed_table("the same sizes again", seq_len, d_model, telling=False)
    for d_model in (2 * draw.sizes(1, 1, 3)[0], 2 * draw.sizes(1, 1, 3)[0] + 1):
        yield _posed_table("a long table", LONGEST, d_model, telling=False)
    for d_model in draw.sizes(2, 12, 20):
        yield _posed_table("a wide table", 24, d_model, telling=False)
    yield _posed_table("more features than positions", 12, 33, telling=False)


def _posed_table(name: str, seq_len: int, d_model: int, telling: bool = True) -> Posed:
    traits = ["odd"] if d_model % 2 else []
    arguments = {"seq_len": seq_len, "d_model": d_model}
    return Posed(name, arguments, traits=traits, telling=telling)


Exponent = Callable[[Tensor, int], Tensor]  # of the base, by feature (float64) and d_model


def right_exponent(feature: Tensor, d_model: int) -> Tensor:
    return feature // 2 * 2 / d_model


def _from_1_to_10000(feature: Tensor, d_model: int) -> Tensor:
    """Both ends included."""
    return feature // 2 / max((d_model + 1) // 2 - 1, 1)


OTHER_EXPONENTS: list[Exponent] = [
    lambda feature, d: feature // 2 / d,  # also what a base of 100 gives
    lambda feature, d: feature / d,
    lambda feature, d: 2 * feature / d,
    lambda feature, d: feature // 2 * 4 / d,  # i runs over 0, 2, 4, ... and is doubled again
    lambda feature, d: (feature // 2 + 1) * 2 / d,
    _from_1_to_10000,
    lambda feature, d: feature // 2 * 2 / 512,  # the d_model of the paper
    lambda feature, d: feature // 2 * 2 // d,
]
_WRONG_FOR_ODD: list[Exponent] = [
    lambda feature, d: feature // 2 * 2 / (d + d % 2),
    lambda feature, d: feature // 2 / max(d // 2, 1),
]
OTHER_BASES = [10.0, 1e3, 1e5, 1e6, math.e, math.e**4]  # the last: 10000 through a log10


def angles(
    seq_len: int,
    d_model: int,
    exponent: Exponent = right_exponent,
    base: float = 10000.0,
    first: int = 0,
) -> Tensor:
    """The angle of each entry of a table, float64."""
    feature = torch.arange(d_model, dtype=torch.float64)
    positions = torch.arange(first, first + seq_len, dtype=torch.float64)
    return positions.unsqueeze(-1) * base ** -exponent(feature, d_model)  # (seq_len, d_model)


def _sines_where(even: Tensor, angle: Tensor) -> Tensor:
    return torch.where(even, angle.sin(), angle.cos()).float()


def _features_are_even(d_model: int) -> Tensor:
    return torch.arange(d_model) % 2 == 0


def _encoding_with(
    exponent: Exponent = right_exponent, base: float = 10000.0, first: int = 0
) -> Answer:
    def positional_encoding(seq_len: int, d_model: int) -> Tensor:
        angle = angles(seq_len, d_model, exponent, base, first)
        return _sines_where(_features_are_even(d_model), angle)

    return positional_encoding


def _halves(
    seq_len: int, d_model: int, exponent: Exponent = right_exponent
) -> tuple[Tensor, Tensor]:
    """All sines and all cosines, one for each pair."""
    angle = angles(seq_len, d_model, exponent)[:, ::2]
    return angle.sin().float(), angle.cos().float()


def _concatenated(seq_len: int, d_model: int) -> Tensor:
    return torch.cat(_halves(seq_len, d_model), dim=-1)[:, :d_model]


def _concatenated_untrimmed(seq_len: int, d_model: int) -> Tensor:
    return torch.cat(_halves(seq_len, d_model), dim=-1)


def _concatenated_and_padded(seq_len: int, d_model: int) -> Tensor:
    sines, cosines = (half[:, : d_model // 2] for half in _halves(seq_len, d_model))
    return torch.cat([sines, cosines, torch.zeros(seq_len, d_model % 2)], dim=-1)


def _concatenated_as_elsewhere(seq_len: int, d_model: int) -> Tensor:
    """As in tensor2tensor and fairseq, exponents included."""
    return torch.cat(_halves(seq_len, d_model, _from_1_to_10000), dim=-1)[:, :d_model]


def _cosines_before_sines(seq_len: int, d_model: int) -> Tensor:
    return torch.cat(_halves(seq_len, d_model)[::-1], dim=-1)[:, :d_model]


def _swapped(seq_len: int, d_model: int) -> Tensor:
    return _sines_where(~_features_are_even(d_model), angles(seq_len, d_model))


def _only_sines(seq_len: int, d_model: int) -> Tensor:
    return angles(seq_len, d_model).sin().float()


def _only_cosines(seq_len: int, d_model: int) -> Tensor:
    return angles(seq_len, d_model).cos().float()


def _alternating_by_row(seq_len: int, d_model: int) -> Tensor:
    even = _features_are_even(seq_len).unsqueeze(-1)
    return _sines_where(even, angles(seq_len, d_model))


def _ending_on(last: Callable[[Tensor], Tensor]) -> Answer:
    """An odd d_model ends on something else."""

    def positional_encoding(seq_len: int, d_model: int) -> Tensor:
        table = reference.positional_encoding(seq_len, d_model)
        if d_model % 2:
            table[:, -1] = last(angles(seq_len, d_model)[:, -1]).float()
        return table

    return positional_encoding


def _in_whole_numbers(seq_len: int, d_model: int) -> Tensor:
    return reference.positional_encoding(seq_len, d_model).long()


POSITIONAL_ENCODING = Exercise(
    id="positional_encoding",
    points=3,
    reference=reference.positional_encoding,
    cases=encoding_cases,
    outputs=["table"],
    axes={"table": ["position", "feature"]},
    trait_diagnoses={"odd": "odd-crash"},
    misconceptions=[
        Misconception(
            "concatenated",
            "All your sines come first, then all cosines. Here they take turns: feature 2i is a "
            "sine, feature 2i+1 the cosine of the same angle. Fill `table[:, 0::2]` and "
            "`table[:, 1::2]`, or stack the two in a new last dimension and flatten it.",
            [
                _concatenated,
                _concatenated_untrimmed,
                _concatenated_and_padded,
                _concatenated_as_elsewhere,
                _cosines_before_sines,
            ],
        ),
        Misconception(
            "swapped-sin-cos",
            "Sines and cosines are exchanged: even features (0, 2, ...) are sines, odd ones are "
            "cosines. At position 0 a row reads 0, 1, 0, 1, ...",
            [_swapped],
        ),
        Misconception(
            "wrong-frequency",
            "Your angles have another exponent. Features 2i and 2i+1 are a pair and share the "
            "angle pos / 10000^(2i/d_model). So with j the number of a feature the exponent is "
            "2*(j // 2) / d_model; `torch.arange(0, d_model, 2)` holds the 2i already, one for "
            "each pair. (A base of 100 has the same effect as an exponent of i/d_model.)",
            [_encoding_with(exponent) for exponent in OTHER_EXPONENTS + _WRONG_FOR_ODD],
        ),
        Misconception(
            "wrong-base",
            "Your angles have another base: it is 10000 that is raised to the power. (Through an "
            "exponential it is exp(-log(10000) * 2i/d_model), with the natural logarithm.)",
            [_encoding_with(base=base) for base in OTHER_BASES],
        ),
        Misconception(
            "one-based",
            "Your positions start from 1. They start from 0, so that the first row reads 0, 1, "
            "0, 1, ...: `torch.arange(seq_len)`.",
            [_encoding_with(first=1)],
        ),
        Misconception(
            "odd-crash",
            "Your function fails where d_model is odd, and there alone. There is one sine more "
            "than there are cosines then, and it comes last: cut the cosines to the d_model // 2 "
            "that fit, or fill one feature more and cut the table. The exponents stay 2i/d_model.",
            [_ending_on(torch.zeros_like), _ending_on(torch.cos)],
        ),
        Misconception(
            "only-sines",
            "Every feature of yours is the same function of its angle. The even ones are sines, "
            "the odd ones cosines: without both, no linear map leads from one position to another.",
            [_only_sines, _only_cosines],
        ),
        Misconception(
            "alternating-rows",
            "Sines and cosines alternate from position to position. It is the features that "
            "alternate: in `table[:, 0::2]` the first index is the position, the second the "
            "feature.",
            [_alternating_by_row],
        ),
        Misconception(
            "wrong-dtype",
            "The dtype of your table is not float32. (Where it holds whole numbers, everything "
            "after the point is cut off when a sine is written into it: make the table with "
            "`torch.zeros`, whose entries are float32. Where it is float64, end with `.float()`.)",
            [_in_whole_numbers],
        ),
    ],
)

# --- shift_matrix --------------------------------------------------------------------------------


def shift_cases(draw: Draw) -> Iterator[Posed]:
    """Offsets of both signs and 0, for a single pair of features and for several.

    Most stay below 25: even steps of one, a matrix's powers or its exponential, all in float32,
    are near enough there.
    """
    for d_model in (4, 6, 8):
        near, far = draw.sizes(1, 1, 5)[0], draw.sizes(1, 6, 11)[0]
        for offset in (near, -far, far, -near):
            yield _posed_shift(offset, d_model)
    near, far = draw.sizes(2, 1, 9)
    for offset, d_model in [(near, 2), (-far, 2), (0, 6), (1, 6), (-1, 6)]:
        yield _posed_shift(offset, d_model)
    for offset, d_model in [(0, 2), (0, 10)]:
        yield _posed_shift(offset, d_model, telling=False)
    for d_model in (2, 10, 12, 16, 32):
        further = draw.sizes(2, 12, 24)
        yield _posed_shift(further[0], d_model, telling=False)
        yield _posed_shift(-further[1], d_model, telling=False)
    for offset in (100, -100):
        yield _posed_shift(offset, 4, telling=False)
    # What is kept from one call to the next shows where a size comes again.
    yield _posed_shift(near, 2, telling=False)
    yield _posed_shift(1, 6, telling=False)


def _posed_shift(offset: int, d_model: int, telling: bool = True) -> Posed:
    name = "an offset of 0" if offset == 0 else f"an offset {'below' if offset < 0 else 'above'} 0"
    traits = ["zero"] if offset == 0 else ["negative"] if offset < 0 else []
    arguments = {"offset": offset, "d_model": d_model}
    return Posed(name, arguments, traits=traits, telling=telling)


def _turned(cos: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """Blocks [[cos, above], [below, cos]] on the diagonal, from values for each row (d_model,)."""
    row = torch.arange(len(cos))
    matrix = torch.diag(cos)
    matrix[row, row ^ 1] = torch.where(row % 2 == 0, above, below)  # row ^ 1: the pair's other one
    return matrix.float()


def _angle_of(
    offset: int, d_model: int, exponent: Exponent = right_exponent, base: float = 10000.0
) -> Tensor:
    return angles(1, d_model, exponent, base, first=offset)[0]


def _shift_with(exponent: Exponent = right_exponent, base: float = 10000.0) -> Answer:
    def shift_matrix(offset: int, d_model: int) -> Tensor:
        angle = _angle_of(offset, d_model, exponent, base)
        return _turned(angle.cos(), angle.sin(), -angle.sin())

    return shift_matrix


def _shift_by(change: Callable[[int], int]) -> Answer:
    return lambda offset, d_model: reference.shift_matrix(change(offset), d_model)


def _for_concatenated(sign: int) -> Answer:
    """The map for encodings that hold all sines, then all cosines."""

    def shift_matrix(offset: int, d_model: int) -> Tensor:
        matrix = reference.shift_matrix(sign * offset, d_model)
        order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
        return matrix[order][:, order]

    return shift_matrix


def _cosines_for_sines(offset: int, d_model: int) -> Tensor:
    angle = _angle_of(offset, d_model)
    return _turned(angle.sin(), angle.cos(), -angle.cos())


def _without_minus(offset: int, d_model: int) -> Tensor:
    angle = _angle_of(offset, d_model)
    return _turned(angle.cos(), angle.sin(), angle.sin())


def _both_minus(offset: int, d_model: int) -> Tensor:
    angle = _angle_of(offset, d_model)
    return _turned(angle.cos(), -angle.sin(), -angle.sin())


def _reflection(sign: int) -> Answer:
    """[[cos, sin], [sin, -cos]], or the same with both signs turned."""

    def shift_matrix(offset: int, d_model: int) -> Tensor:
        angle = _angle_of(offset, d_model)
        signs = sign * (1 - 2 * (torch.arange(d_model) % 2))
        return _turned(signs * angle.cos(), angle.sin(), angle.sin())

    return shift_matrix


def _negated_below_0(offset: int, d_model: int) -> Tensor:
    matrix = reference.shift_matrix(abs(offset), d_model)
    return -matrix if offset < 0 else matrix


def _rolled(dim: int) -> Answer:
    return lambda offset, d_model: torch.eye(d_model).roll(offset, dims=dim)


def _identity(offset: int, d_model: int) -> Tensor:
    return torch.eye(d_model)


SHIFT_MATRIX = Exercise(
    id="shift_matrix",
    points=3,
    reference=reference.shift_matrix,
    cases=shift_cases,
    outputs=["matrix"],
    axes={"matrix": ["row", "column"]},
    trait_diagnoses={"negative": "negative-offset", "zero": "zero-offset"},
    sentences={
        "zero-offset": "Your matrix is wrong for an offset of 0, and there alone. To shift by "
        "nothing is the identity, which the general formula gives by itself (cos 0 is 1, sin 0 "
        "is 0): it needs no case of its own."
    },
    misconceptions=[
        Misconception(
            "backward",
            "Your matrix shifts the other way, from PE[pos] to PE[pos - offset] (or it is meant "
            "for PE[pos] @ M). Read the formulas of sin(a + b) and cos(a + b) as two rows: which "
            "factor belongs to sin a, which to cos a?",
            [_shift_by(lambda offset: -offset)],
        ),
        Misconception(
            "concatenated",
            "Your matrix is one for encodings in which all sines come first, then all cosines. "
            "Here a sine and its cosine are neighbours, features 2i and 2i+1, so M has a block of "
            "2 by 2 for each pair along its diagonal.",
            [_for_concatenated(1), _for_concatenated(-1)],
        ),
        Misconception(
            "wrong-frequency",
            "Your angles have another exponent. The pair of features 2i and 2i+1 turns by one "
            "angle, offset / 10000^(2i/d_model); where i runs over 0, 2, 4, ... it is the 2i "
            "already. (A base of 100 has the same effect as an exponent of i/d_model.)",
            [_shift_with(exponent) for exponent in OTHER_EXPONENTS],
        ),
        Misconception(
            "wrong-base",
            "Your angles have another base: they are those of the encodings, "
            "offset / 10000^(2i/d_model).",
            [_shift_with(base=base) for base in OTHER_BASES],
        ),
        Misconception(
            "negative-offset",
            "Your matrix is wrong for offsets below 0, and there alone. Nothing is special about "
            "them: the formula with sin(-b) = -sin b and cos(-b) = cos b holds as it stands. Look "
            "for an abs, a range, a power or a row of a table that takes no negative number.",
            [
                _shift_by(abs),
                _shift_by(lambda offset: max(offset, 0)),
                _negated_below_0,
            ],
        ),
        Misconception(
            "wrong-sign",
            "The signs in your blocks are not those of a rotation. In one both cosines have the "
            "same sign and the sines opposite ones; the formulas of sin(a + b) and cos(a + b) say "
            "which.",
            [_without_minus, _both_minus, _reflection(1), _reflection(-1)],
        ),
        Misconception(
            "swapped-sin-cos",
            "Sines and cosines are exchanged in your blocks. For an offset of 0 the matrix is the "
            "identity, so it is the cosines that stand on the diagonal.",
            [_cosines_for_sines],
        ),
        Misconception(
            "one-too-far",
            "Your matrix shifts by offset + 1: offset is the number of positions itself, and for "
            "0 the matrix is the identity.",
            [_shift_by(lambda offset: offset + 1)],
        ),
        Misconception(
            "moves-features",
            "Your matrix moves features to other places. M turns the features of one position "
            "into those of another, and each pair stays in its place: it is a rotation of every "
            "pair by offset / 10000^(2i/d_model).",
            [_rolled(0), _rolled(1)],
        ),
        Misconception(
            "identity",
            "Your matrix leaves every encoding as it is: offset does not come in.",
            [_identity],
        ),
    ],
)

# --- PositionalEncoding --------------------------------------------------------------------------


class Encoding(nn.Module):
    """The right module in parts, each of which a mistake may replace."""

    table: Tensor

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.keep(self.made(max_len, d_model))

    def made(self, max_len: int, d_model: int) -> Tensor:
        return reference.positional_encoding(max_len, d_model)

    def keep(self, table: Tensor) -> None:
        self.register_buffer("table", table)

    def rows(self, x: Tensor) -> Tensor:
        return self.table[: x.shape[-2]]

    def joined(self, x: Tensor, rows: Tensor) -> Tensor:
        return x + rows

    def forward(self, x: Tensor) -> Tensor:
        return self.joined(x, self.rows(x))


def module_cases(draw: Draw) -> Iterator[Posed]:
    """Tables that are longer than the sequence or as long, called again, moved, and called for
    more than they hold."""
    for leading in ([], [2], [3, 2]):
        name = leading_name(len(leading))
        seq, even, odd = _seq_and_widths(draw)
        (max_len,) = draw.sizes(1, 10, 13)
        first = _posed_module(draw, f"{name}, an even d_model", leading, seq, even, max_len)
        yield first
        yield from _further_calls(draw, first, max_len)
        yield _posed_module(draw, f"{name}, an odd d_model", leading, seq, odd, max_len)
        full = f"{name}, as many tokens as the table has rows"
        yield _posed_module(draw, full, leading, seq, even, seq)
        yield _posed_module(draw, f"{name}, one token", leading, 1, even, seq)
        moved = f"{name}, all that .to() moves multiplied by 3"
        yield _posed_module(draw, moved, leading, seq, odd, max_len, moved=3.0)
        yield from _too_long(draw, leading, seq, even)
    yield _posed_module(draw, "all sizes equal", [3], 3, 3, 3)
    yield _posed_module(draw, "one feature", [2], 4, 1, 6)
    yield _posed_module(draw, "a table of one row", [3], 1, 4, 1)
    yield _posed_module(draw, "a batch of one", [1], 3, 4, 7)
    yield _posed_module(draw, leading_name(3), [2, 1, 3], 5, 4, 8)
    used = _posed_module(draw, "more features than rows", [2], 4, 9, 6)
    yield used
    too_long = {"x": draw.normal(2, 7, 9)}
    yield replace(once_more(used, "a used module, a sequence too long", too_long), raises=True)
    yield once_more(used, "called again after that", {"x": draw.normal(2, 6, 9)})
    yield replace(_posed_module(draw, "a long sequence", [2], 48, 4, 50), telling=False)


def _seq_and_widths(draw: Draw) -> tuple[int, int, int]:
    """A length, an even and an odd d_model, all different, and none of them 1 to 3."""
    pairs, more = draw.sizes(2, 2, 4)
    even, odd = 2 * pairs, 2 * more + 1
    return next(size for size in draw.sizes(3, 4, 9) if size not in (even, odd)), even, odd


def _posed_module(
    draw: Draw,
    name: str,
    leading: list[int],
    seq: int,
    d_model: int,
    max_len: int,
    moved: float = 1.0,
) -> Posed:
    setup = Setup({"d_model": d_model, "max_len": max_len}, moved=moved)
    return Posed(name, {"x": draw.normal(*leading, seq, d_model)}, len(leading), setup=setup)


def _further_calls(draw: Draw, first: Posed, max_len: int) -> Iterator[Posed]:
    x = first.arguments["x"]
    *leading, seq, d_model = x.shape
    if leading:
        yield reversed_batch(first)
    again = {"x": draw.normal(*x.shape)}
    yield once_more(first, f"{first.name}, called again", again)
    shorter = {"x": draw.normal(*leading, seq - 2, d_model)}
    yield once_more(first, f"{first.name}, called again with fewer tokens", shorter)
    longer = {"x": draw.normal(*leading, max_len, d_model)}
    yield once_more(first, f"{first.name}, called again with more tokens", longer)
    evaluated = {"x": draw.normal(*x.shape)}
    yield once_more(first, f"{first.name}, in eval mode", evaluated, evaluating=True)


def _too_long(draw: Draw, leading: list[int], seq: int, d_model: int) -> Iterator[Posed]:
    """One token too many, and several; one row would fit any number of tokens by broadcasting."""
    name = f"{leading_name(len(leading))}, more tokens than max_len"
    for max_len, tokens in [(seq, seq + 1), (seq, seq + 3), (1, 2)]:
        posed = _posed_module(draw, name, leading, tokens, d_model, max_len)
        yield replace(posed, raises=True)


def _rows_by_entry(self: Encoding, x: Tensor) -> Tensor:
    """One row for each entry of the first dimension, whatever comes after it."""
    count, *others, d_model = x.shape
    return self.table[:count].reshape(-1, *[1] * len(others), d_model)


def _sines_of_buffer(self: Encoding, x: Tensor) -> Tensor:
    return _sines_where(_features_are_even(x.shape[-1]), self.table[: x.shape[-2]])


def _scaled(scale: Callable[[int], float]) -> Answer:
    return but(Encoding, joined=lambda self, x, rows: x * scale(x.shape[-1]) + rows)


MODULE = Exercise(
    id="PositionalEncoding",
    points=3,
    reference=reference.PositionalEncoding,
    cases=module_cases,
    outputs=["output"],
    axes={"output": ["token", "feature"]},
    builds_on=["positional_encoding"],
    # The module has no parameter at all: one that can be trained is another mistake than a table
    # that is kept as one that cannot.
    renamed={"wrong-parameters": "trainable", "frozen-parameters": "not-a-buffer"},
    sentences={
        "trainable": "Your module has a parameter, so training would change it. The encodings are "
        "fixed: keep the table with `self.register_buffer('table', table)`, not in an "
        "`nn.Parameter`, `nn.Embedding` or `nn.Linear`, and nothing else that can be trained.",
        "raised": "Your code raised an exception. (Where it is a ValueError of your own: a "
        "sequence of exactly max_len tokens still fits. And mind the order of the sizes: "
        "PositionalEncoding(d_model, max_len), but positional_encoding(seq_len, d_model).)",
    },
    misconceptions=[
        Misconception(
            "not-a-buffer",
            "The table that `forward` uses is not a buffer, so it stays behind when the module is "
            "moved with `.to()`. Make it one with `self.register_buffer('table', table)`, and use "
            "`self.table` itself in forward: no plain attribute, list or parameter, no copy or "
            "view kept elsewhere, no table computed anew.",
            [
                but(Encoding, keep=lambda self, table: setattr(self, "table", table)),
                # Angles or frequencies are the buffer: what is moved is not the table.
                but(
                    Encoding,
                    made=lambda self, max_len, d_model: angles(max_len, d_model).float(),
                    rows=_sines_of_buffer,
                ),
            ],
        ),
        Misconception(
            "replaces-input",
            "Your module gives the encodings alone. They are added to the input: x + rows.",
            [
                but(Encoding, joined=lambda self, x, rows: rows.expand_as(x)),
                but(Encoding, joined=lambda self, x, rows: rows),
            ],
        ),
        Misconception(
            "wrong-axis",
            "Positions are counted along another dimension than the sequence: the first one is "
            "the batch here. The sequence is the last but one, x.shape[-2], and "
            "`self.table[: x.shape[-2]]` broadcasts over all that stand in front.",
            [
                # As for inputs of (seq, batch, d_model).
                but(Encoding, rows=lambda self, x: self.table[: x.shape[0]].unsqueeze(1)),
                but(Encoding, rows=lambda self, x: self.table[: x.shape[0]]),
                but(Encoding, rows=_rows_by_entry),
            ],
        ),
        Misconception(
            "scaled-input",
            "You scale the input before you add the encodings. The paper does that to its "
            "embeddings, which is not asked for here: x + rows.",
            [
                _scaled(math.sqrt),
                _scaled(lambda d_model: 1 / math.sqrt(d_model)),
                _scaled(lambda d_model: d_model),
            ],
        ),
        Misconception(
            "last-rows",
            "You add the last rows of the table. Positions start from 0 for every sequence, "
            "however long the table is: `self.table[: x.shape[-2]]`.",
            [but(Encoding, rows=lambda self, x: self.table[-x.shape[-2] :])],
        ),
        Misconception(
            "one-based",
            "Your first token gets the encoding of position 1. Positions start from 0.",
            [
                but(
                    Encoding,
                    made=lambda self, max_len, d_model: _encoding_with(first=1)(max_len, d_model),
                )
            ],
        ),
        Misconception(
            "multiplied",
            "You multiply the input with the encodings. They are added: x + rows.",
            [but(Encoding, joined=lambda self, x, rows: x * rows)],
        ),
    ],
)

TOPIC = Topic("03_positional_encoding", [POSITIONAL_ENCODING, SHIFT_MATRIX, MODULE], public_seed=3)
