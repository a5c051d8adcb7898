# split_heads: failed raised | merge_heads: failed raised | MultiHeadAttention: failed raised
import math

import torch
from torch import nn


def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("heads must divide d_model")
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge_heads(heads):
    return heads.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        if dim % num_heads:
            raise ValueError("num_heads must divide dim")
        self.n_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
