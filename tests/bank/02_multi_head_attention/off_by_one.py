# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    d_head = d_model // n_heads
    out = torch.zeros(*leading, n_heads, seq, d_head)
    for h in range(n_heads):
        out[..., h, :, : d_head - 1] = x[..., h * d_head : (h + 1) * d_head - 1]
    return out


def merge_heads(x):
    n_heads, seq, d_head = x.shape[-3:]
    out = torch.zeros(*x.shape[:-3], seq, n_heads * d_head)
    for h in range(1, n_heads):
        out[..., h * d_head : (h + 1) * d_head] = x[..., h, :, :]
    return out


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
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        out = torch.zeros_like(v)
        for j in range(x.shape[-2] - 1):
            out = out + w[..., j : j + 1] * v[..., j : j + 1, :]
        return self.out_proj(out.transpose(-3, -2).flatten(-2))
