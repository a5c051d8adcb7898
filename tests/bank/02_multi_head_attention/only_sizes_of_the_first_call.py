# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


shape = None


def split_heads(x, n_heads):
    global shape
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    if shape is None:
        shape = (*x.shape[:-1], n_heads, x.shape[-1] // n_heads)
    return x.reshape(shape).transpose(-3, -2)


class _Merge:
    def __call__(self, x):
        if not hasattr(self, "n_heads"):
            self.n_heads = x.shape[-3]
        return torch.cat([x.select(-3, h) for h in range(min(self.n_heads, x.shape[-3]))], dim=-1)


merge_heads = _Merge()


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
        if not hasattr(MultiHeadAttention, "d"):
            MultiHeadAttention.d = self.d_head
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(MultiHeadAttention.d), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
