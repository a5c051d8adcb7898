# split_heads: failed no-value-error | MultiHeadAttention: failed no-value-error/raised
import math

import torch
import torch.nn.functional as F
from torch import nn


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        # fill up with zeros so that it fits
        x = F.pad(x, (0, n_heads - x.shape[-1] % n_heads))
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            return ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
