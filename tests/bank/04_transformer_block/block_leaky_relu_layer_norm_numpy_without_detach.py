# layer_norm: failed raised/no-gradient | TransformerBlock: failed | TransformerBlock.norm_first: failed
import math

import numpy as np
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads != 0")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        d = x.shape[-1] // self.n_heads
        q, k, v = self.qkv(x).split(x.shape[-1], dim=-1)
        q = q.unflatten(-1, (self.n_heads, d))
        k = k.unflatten(-1, (self.n_heads, d))
        v = v.unflatten(-1, (self.n_heads, d))
        scores = torch.einsum("...qhd,...khd->...hqk", q, k) / math.sqrt(d)
        out = torch.einsum("...hqk,...khd->...qhd", scores.softmax(-1), v)
        return self.out_proj(out.flatten(-2))


def layer_norm(x, weight, bias, eps=1e-5):
    a = x.numpy()
    a = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + eps)
    return torch.tensor(a, dtype=torch.float32) * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.LeakyReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attn(self.norm1(x))
            x = x + self.ff(self.norm2(x))
        else:
            x = self.norm1(x + self.attn(x))
            x = self.norm2(x + self.ff(x))
        return x
