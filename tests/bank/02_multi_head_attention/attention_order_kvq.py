# split_heads: failed wrong-shape/interleaved | MultiHeadAttention: failed qkv-order
import math

import torch
from torch import nn


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, d_model // n_heads, n_heads).transpose(-3, -2)

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
        k, v, q = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).transpose(-4, -2).unbind(-3)
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
