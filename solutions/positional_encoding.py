"""Topic 03: sines and cosines that say where a token stands.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def _frequencies(d_model: int) -> Tensor:
    """10000 ** (-2i / d_model), one for each pair of features, float64: (ceil(d_model / 2),)."""
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    return 10000.0**-exponents


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    """Feature 2i is sin(pos / 10000**(2i/d_model)), feature 2i+1 the cosine of the same angle.

    -> (seq_len, d_model), float32, positions from 0; an odd d_model ends on a sine. The angles are
    computed in float64, because float32 loses digits of a sine as the position grows.
    """
    positions = torch.arange(seq_len, dtype=torch.float64)
    angles = positions.unsqueeze(-1) * _frequencies(d_model)  # (seq_len, pairs)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (seq_len, pairs, 2)
    return pairs.flatten(-2)[:, :d_model].float()


def shift_matrix(offset: int, d_model: int) -> Tensor:
    """The M with M @ PE[pos] == PE[pos + offset] for every pos: a rotation for each pair.

    -> (d_model, d_model), float32, for an even d_model; offset in positions, of either sign.
    sin(a + b) = cos b sin a + sin b cos a, and cos(a + b) = -sin b sin a + cos b cos a.
    """
    angles = offset * _frequencies(d_model)  # (pairs,)
    cos, sin = angles.cos(), angles.sin()
    rows = [torch.stack([cos, sin], dim=-1), torch.stack([-sin, cos], dim=-1)]
    rotations = torch.stack(rows, dim=-2)  # (pairs, 2, 2)
    matrix: Tensor = torch.block_diag(*rotations)  # (d_model, d_model)
    return matrix.float()


class PositionalEncoding(nn.Module):
    """x plus the encodings of its positions, from a table that moves with the module.

    Shapes: x (..., seq, d_model) -> the same. ValueError where seq is more than max_len.
    """

    table: Tensor

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        seq, longest = x.shape[-2], self.table.shape[0]
        if seq > longest:
            raise ValueError(f"{seq} tokens, but the table ends after {longest}")
        return x + self.table[:seq]
