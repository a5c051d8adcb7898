# split_heads: failed no-value-error | MultiHeadAttention: failed no-value-error
import math

import torch
from torch import nn


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


def split_heads(x, n_heads):
    while x.shape[-1] % n_heads:
        n_heads -= 1
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        while d_model % n_heads:
            n_heads -= 1
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
