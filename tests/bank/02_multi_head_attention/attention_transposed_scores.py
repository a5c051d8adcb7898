# merge_heads: failed | MultiHeadAttention: failed qkv-order
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    d_model = x.shape[-1]
    if d_model % n_heads != 0:
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
    x = x.view(*x.shape[:-1], n_heads, d_model // n_heads)
    return x.transpose(-2, -3)


def merge_heads(x):
    return torch.cat(list(x.movedim(-3, 0)[1:]) + [x[..., 0, :, :]], dim=-1)


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
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        w = torch.softmax(k @ q.transpose(-2, -1) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
