# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *lead, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("heads must divide features")
    return x.reshape(*lead, seq, n_heads, -1).movedim(-2, -3)


def merge_heads(x):
    *lead, n_heads, seq, d_head = x.shape
    return x.movedim(-3, -2).reshape(*lead, seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    """All heads in one big attention: a token's head only sees the same head of other tokens."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads must divide features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        seq = x.shape[-2]
        q, k, v = self.qkv(x).chunk(3, -1)
        rows = lambda t: t.reshape(*t.shape[:-2], seq * self.n_heads, -1)
        head = torch.arange(self.n_heads).repeat(seq)
        mask = torch.zeros(len(head), len(head)).masked_fill(head[:, None] != head[None, :], float("-inf"))
        scores = rows(q) @ rows(k).mT / math.sqrt(x.shape[-1] / self.n_heads)
        out = torch.softmax(scores + mask, -1) @ rows(v)
        return self.out_proj(out.reshape(x.shape))
