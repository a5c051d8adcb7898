# split_heads: failed no-transpose | merge_heads: failed no-transpose | MultiHeadAttention: failed no-transpose
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads")
    return x.reshape(x.shape[:-2] + (n_heads, x.shape[-2], x.shape[-1] // n_heads))


def merge_heads(x):
    return x.reshape(x.shape[:-3] + (x.shape[-2], x.shape[-3] * x.shape[-1]))


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
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
