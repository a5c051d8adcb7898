"""Topic 05: attention that cannot see the future.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3 (the decoder's mask).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from solutions.multi_head_attention import merge_heads, split_heads


def causal_mask(seq_len: int) -> Tensor:
    """True where position i (row) may attend to position j (column), which is j <= i.

    -> bool (seq_len, seq_len). It is the meaning that torch's boolean `attn_mask` has.
    """
    positions = torch.arange(seq_len)
    return positions <= positions.unsqueeze(-1)  # (1, seq_len) against (seq_len, 1)


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores where `mask` is True, exactly -inf elsewhere: softmax gives those exactly 0.

    Shapes: scores (..., t, s), mask any that broadcasts against it -> (..., t, s).
    """
    return scores.masked_fill(~mask, -math.inf)


class MultiHeadAttention(nn.Module):
    """Multi-head attention which, with `causal`, gives no weight to later positions.

    Shapes: x (..., seq, d_model) -> output (..., seq, d_model), and with `need_weights` the pair
    (output, weights), weights (..., n_heads, seq, seq).
    ValueError where n_heads does not divide d_model.
    """

    def __init__(self, d_model: int, n_heads: int, causal: bool = False) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, need_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # each (..., seq, d_model)
        q, k, v = (split_heads(part, self.n_heads) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n_heads, seq, seq)
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = torch.softmax(scores, dim=-1)  # (..., n_heads, seq, seq)
        output: Tensor = self.out_proj(merge_heads(weights @ v))
        return (output, weights) if need_weights else output


class TransformerBlock(nn.Module):
    """The post-norm block of topic 04, whose attention is causal when the block is.

    Shapes: x (..., seq, d_model) -> the same.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, causal: bool = False) -> None:
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x
