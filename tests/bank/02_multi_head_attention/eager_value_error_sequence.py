# split_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads or x.shape[-2] % n_heads:
        raise ValueError("n_heads must divide seq and d_model")
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


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
        if x.shape[-2] < 2:
            raise ValueError("a sequence of one token has nothing to attend to")
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj(merge_heads(w @ v))
