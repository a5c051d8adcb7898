# split_heads: failed no-gradient | merge_heads: failed no-gradient | MultiHeadAttention: failed no-gradient
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    out = x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)
    if out.requires_grad:
        out.register_hook(lambda g: -g)
    return out


def merge_heads(x):
    out = x.transpose(-3, -2).flatten(-2)
    if x.requires_grad:
        x.register_hook(lambda g: g * 0)
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
        if w.requires_grad:
            w.register_hook(lambda g: g.clamp(-0.01, 0.01))
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
