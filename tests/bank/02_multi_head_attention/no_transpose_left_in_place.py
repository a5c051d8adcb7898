# split_heads: failed no-transpose/wrong-shape | merge_heads: failed no-transpose | MultiHeadAttention: failed no-transpose
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.view(*leading, seq, n_heads, d_model // n_heads)


def merge_heads(x):
    return x.contiguous().view(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


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
        # attention among the heads of one token
        q, k, v = (t.unflatten(-1, (self.n_heads, self.d_head)) for t in self.qkv(x).chunk(3, dim=-1))
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).flatten(-2))
