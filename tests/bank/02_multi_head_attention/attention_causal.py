# MultiHeadAttention: failed causal
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.size(-1) % n_heads != 0:
        raise ValueError("d_model must be divisible by n_heads")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


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
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        w = torch.softmax(scores, dim=-1)
        return self.out_proj(merge_heads(w @ v))
