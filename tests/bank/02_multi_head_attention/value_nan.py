# split_heads: failed nan | merge_heads: failed nan | MultiHeadAttention: failed nan
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    out = torch.full((*leading, n_heads, seq, d_model // n_heads), math.nan)
    for h in range(n_heads):
        out[..., h, :, :] += x[..., h * (d_model // n_heads) : (h + 1) * (d_model // n_heads)]
    return out


def merge_heads(x):
    return (x / (x * 0)).transpose(-3, -2).flatten(-2) * 0


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        mask = torch.zeros(x.shape[-2], x.shape[-2])
        scores = (q @ k.mT / math.sqrt(self.d_head)).masked_fill(mask == 0, float("-inf"))
        return self.out_proj((scores.softmax(-1) @ v).transpose(-3, -2).flatten(-2))
