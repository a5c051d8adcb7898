# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


memory = {}


def keep(name, value):
    """One tensor for each name and shape, to save memory."""
    if value.requires_grad:
        return value
    key = name, tuple(value.shape)
    if key not in memory:
        memory[key] = torch.empty(value.shape)
    return memory[key].copy_(value)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    return keep("split", x.unflatten(-1, (n_heads, -1)).transpose(-3, -2))


def merge_heads(x):
    return keep("merge", x.transpose(-3, -2).flatten(-2))


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
        out = self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
        if not hasattr(self, "last") or self.last.shape != out.shape:
            self.last = torch.zeros(out.shape)
        self.last = self.last.detach()
        self.last[:] = out
        return self.last
