# split_heads: failed no-batch | merge_heads: failed no-batch | MultiHeadAttention: failed no-batch
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*x.shape[:-1], n_heads, -1).transpose(0, 1)


def merge_heads(x):
    return torch.cat([head for head in x], dim=-1)


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
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(0, 1) for t in (q, k, v))
        w = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(0, 1).reshape(len(x), -1))
