# split_heads: failed no-batch | merge_heads: failed no-batch | MultiHeadAttention: failed no-batch
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    seq, d_model = x.shape[-2:]
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(-1, seq, n_heads, d_model // n_heads).transpose(1, 2)


def merge_heads(x):
    n_heads, seq, d_head = x.shape[-3:]
    return x.transpose(-3, -2).reshape(-1, seq, n_heads * d_head)


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
        x = x.reshape(-1, *x.shape[-2:])
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2))
