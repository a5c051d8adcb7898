"""Topic 02: several attentions side by side, each on its own features.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its own consecutive features: head h gets h*d_head to (h+1)*d_head.

    Shapes: x (..., seq, d_model) -> (..., n_heads, seq, d_head), with d_head = d_model / n_heads.
    ValueError where n_heads does not divide d_model.
    """
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"{n_heads} heads do not divide {d_model} features")
    parts = x.reshape(*leading, seq, n_heads, d_model // n_heads)  # (..., seq, n_heads, d_head)
    return parts.transpose(-3, -2)  # (..., n_heads, seq, d_head)


def merge_heads(x: Tensor) -> Tensor:
    """The inverse of `split_heads`: the heads' features side by side again.

    Shapes: x (..., n_heads, seq, d_head) -> (..., seq, n_heads*d_head).
    """
    return x.transpose(-3, -2).flatten(-2)  # (..., seq, n_heads, d_head) -> (..., seq, d_model)


class MultiHeadAttention(nn.Module):
    """out_proj(merge(softmax(q kᵀ / sqrt(d_head)) v)), for each head apart.

    Shapes: x (..., seq, d_model) -> (..., seq, d_model).
    ValueError where n_heads does not divide d_model.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)  # all queries, then all keys, then all values
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # each (..., seq, d_model)
        q, k, v = (split_heads(part, self.n_heads) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n_heads, seq, seq)
        output: Tensor = self.out_proj(merge_heads(torch.softmax(scores, dim=-1) @ v))
        return output
