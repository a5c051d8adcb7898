"""Takes True for blocked, twice, which cancels out; and builds a block that is always causal."""

import math

import torch
from torch import Tensor, nn

from solutions.multi_head_attention import MultiHeadAttention as UnmaskedAttention
from solutions.multi_head_attention import merge_heads, split_heads


def causal_mask(seq_len: int) -> Tensor:
    return torch.ones(seq_len, seq_len, dtype=torch.bool).triu(diagonal=1)


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(mask, -math.inf)


class MultiHeadAttention(UnmaskedAttention):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__(d_model, n_heads)
        self.causal = causal

    def forward(self, x, need_weights=False):
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj(merge_heads(weights @ v))
        return (output, weights) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=True):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal=True)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.ff(x))
