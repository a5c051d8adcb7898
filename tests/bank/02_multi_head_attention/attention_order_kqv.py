# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed qkv-order
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    d_head = x.shape[-1] // n_heads
    return torch.stack([x[..., i * d_head : (i + 1) * d_head] for i in reversed(range(n_heads))], -3)


def merge_heads(x):
    return torch.cat(x.flip(-3).unbind(-3), dim=-1)


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
        k, q, v = self.qkv(x).split(x.shape[-1], dim=-1)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in (q, k, v))
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
