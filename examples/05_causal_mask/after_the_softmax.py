"""Clears the weights after the softmax, so what the future had is missing from each row."""

import math

import torch
from torch import Tensor, nn

from solutions.multi_head_attention import merge_heads, split_heads
from solutions.transformer_block import TransformerBlock as UnmaskedBlock


def causal_mask(seq_len: int) -> Tensor:
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads, self.causal = n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        if self.causal:
            weights = weights * causal_mask(x.shape[-2])
        output = self.out_proj(merge_heads(weights @ v))
        return (output, weights) if need_weights else output


class TransformerBlock(UnmaskedBlock):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__(d_model, n_heads, d_ff)
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
