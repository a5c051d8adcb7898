# merge_heads: failed | MultiHeadAttention: failed qkv-order
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads do not fit")
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, -3)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.mT.reshape(*leading, seq, n_heads * d_head)


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
        # split first, then cut each head into q, k and v
        q, k, v = split_heads(self.qkv(x), self.n_heads).split(self.d_head, dim=-1)
        out = torch.softmax(q @ k.mT / math.sqrt(self.d_head), -1) @ v
        return self.out_proj(out.transpose(-3, -2).flatten(-2))
