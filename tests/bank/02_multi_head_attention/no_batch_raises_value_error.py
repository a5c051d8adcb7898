# split_heads: failed no-batch | merge_heads: failed no-batch | MultiHeadAttention: failed no-batch
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.ndim != 3 or x.shape[-1] % n_heads:
        raise ValueError("x must be (batch, seq, d_model) and n_heads must divide d_model")
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge_heads(x):
    assert x.dim() == 4, "x must be (batch, n_heads, seq, d_head)"
    return x.transpose(1, 2).flatten(2)


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
        if x.ndim != 3:
            raise ValueError(f"expected (batch, seq, d_model), got {tuple(x.shape)}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2))
