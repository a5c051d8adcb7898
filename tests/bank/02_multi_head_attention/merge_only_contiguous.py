# split_heads: failed no-transpose/wrong-shape | merge_heads: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return torch.stack(x.split(d_model // n_heads, dim=-1), dim=-2)


def merge_heads(x):
    n_heads, seq, d_head = x.shape[-3:]
    lead = x.shape[:-3]
    strides = [n_heads * seq * d_head] * len(lead)
    for i in range(len(lead) - 2, -1, -1):
        strides[i] = strides[i + 1] * lead[i + 1]
    # saves a copy of the whole tensor
    x = x.as_strided((*lead, seq, n_heads, d_head), (*strides, d_head, seq * d_head, 1))
    return x.flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads do not fit")
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = []
        for q, k, v in zip(*(t.split(self.d_head, -1) for t in self.qkv(x).chunk(3, -1))):
            heads.append(torch.softmax(q @ k.mT / math.sqrt(self.d_head), -1) @ v)
        return self.out_proj(torch.cat(heads, -1))
