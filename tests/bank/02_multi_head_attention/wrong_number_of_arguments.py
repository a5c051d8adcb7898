# split_heads: failed raised | MultiHeadAttention: failed raised
import math

import torch
from torch import nn


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


def split_heads(x, n_heads, d_head):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.unflatten(-1, (n_heads, d_head)).transpose(-3, -2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value):
        q = split_heads(self.qkv(query).chunk(3, -1)[0], self.n_heads, query.shape[-1] // self.n_heads)
        k = split_heads(self.qkv(key).chunk(3, -1)[1], self.n_heads, key.shape[-1] // self.n_heads)
        v = split_heads(self.qkv(value).chunk(3, -1)[2], self.n_heads, value.shape[-1] // self.n_heads)
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
