# split_heads: failed no-value-error | MultiHeadAttention: failed scaled-by-d-model
import math

import torch
from torch import nn


def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


def split_heads(x, n_heads):
    d_head = x.shape[-1] // n_heads
    heads = [x[..., h * d_head : (h + 1) * d_head] for h in range(n_heads)]
    return torch.stack(heads, dim=-3)


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
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
