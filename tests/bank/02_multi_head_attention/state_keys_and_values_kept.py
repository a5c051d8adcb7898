# MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


class MultiHeadAttention(nn.Module):
    """With a cache of keys and values, as in real models."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.cache = None

    def forward(self, x):
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        if self.cache is not None and self.cache[0].shape[:-2] == k.shape[:-2]:
            k = torch.cat([self.cache[0], k], dim=-2)
            v = torch.cat([self.cache[1], v], dim=-2)
        self.cache = k.detach(), v.detach()
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(w @ v))
