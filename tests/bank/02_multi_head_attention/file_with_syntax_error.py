# split_heads: failed raised | merge_heads: failed raised | MultiHeadAttention: failed raised
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads = 0:
        raise ValueError("n_heads must divide d_model")
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


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
