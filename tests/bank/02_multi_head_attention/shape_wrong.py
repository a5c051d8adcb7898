# split_heads: failed wrong-shape | merge_heads: failed wrong-shape/swapped-axes | MultiHeadAttention: failed wrong-shape
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2).unsqueeze(0)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2).mT


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
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2)).sum(-2)
