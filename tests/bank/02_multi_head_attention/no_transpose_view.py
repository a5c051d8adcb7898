# split_heads: failed no-transpose | merge_heads: failed no-transpose | MultiHeadAttention: failed no-transpose
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, n_heads, seq, d_model // n_heads)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.reshape(*leading, seq, n_heads * d_head)


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
        *lead, seq, d_model = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(*lead, self.n_heads, seq, self.d_head)
        k = k.reshape(*lead, self.n_heads, seq, self.d_head)
        v = v.reshape(*lead, self.n_heads, seq, self.d_head)
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).reshape(*lead, seq, d_model))
