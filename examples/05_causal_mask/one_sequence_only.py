"""Its mask looks to the future; its attention takes apart a shape of two and thinks of no batch."""

import math

import torch
from torch import Tensor, nn

from solutions.transformer_block import TransformerBlock as UnmaskedBlock


def causal_mask(seq_len: int) -> Tensor:
    return torch.ones(seq_len, seq_len, dtype=torch.bool).triu()


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, scores, -math.inf)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads, self.causal = n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq_len, d_model = x.shape
        parts = self.qkv(x).view(seq_len, 3, self.n_heads, d_model // self.n_heads)
        q, k, v = parts.permute(1, 2, 0, 3)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        if self.causal:
            future = torch.ones(seq_len, seq_len, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj((weights @ v).transpose(0, 1).reshape(seq_len, d_model))
        return (output, weights) if need_weights else output


class TransformerBlock(UnmaskedBlock):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__(d_model, n_heads, d_ff)
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
