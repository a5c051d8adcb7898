# split_heads: failed interleaved | merge_heads: failed interleaved | MultiHeadAttention: failed interleaved
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    x = x.reshape(*leading, seq, d_model // n_heads, n_heads)
    return x.movedim(-1, -3)


def merge_heads(x):
    return x.movedim(-3, -1).flatten(-2)


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
        q, k, v = (t.unflatten(-1, (self.d_head, self.n_heads)).movedim(-1, -3) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), -1)
        return self.out_proj((w @ v).movedim(-3, -1).flatten(-2))
