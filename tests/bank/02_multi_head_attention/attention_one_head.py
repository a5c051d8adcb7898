# split_heads: failed wrong-shape | MultiHeadAttention: failed one-head
import math

import torch
from torch import nn


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads != 0:
        raise ValueError("n_heads must divide d_model")
    # every head looks at everything
    return x.unsqueeze(-3).repeat_interleave(n_heads, dim=-3)


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
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(w @ v)
