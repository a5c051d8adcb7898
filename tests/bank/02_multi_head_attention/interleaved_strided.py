# split_heads: failed interleaved | merge_heads: failed interleaved | MultiHeadAttention: failed interleaved
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return torch.stack([x[..., h::n_heads] for h in range(n_heads)], dim=-3)


def merge_heads(x):
    return torch.stack(x.unbind(-3), dim=-1).flatten(-2)


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
        # split with a stride, merge the usual way
        q, k, v = self.qkv(x).chunk(3, -1)
        out = []
        for i in range(self.n_heads):
            a, b, c = q[..., i :: self.n_heads], k[..., i :: self.n_heads], v[..., i :: self.n_heads]
            out.append(torch.softmax(a @ b.mT / math.sqrt(self.d_head), -1) @ c)
        return self.out_proj(torch.cat(out, -1))
