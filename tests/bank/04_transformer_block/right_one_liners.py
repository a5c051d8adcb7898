# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads: raise ValueError
        self.n_heads, self.qkv, self.out_proj = n_heads, nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).transpose(-4, -2).unbind(-3)
        return self.out_proj(((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(-3, -2).flatten(-2))


layer_norm = lambda x, weight, bias, eps=1e-5: (c := x - x.mean(-1, True)) / (c.square().mean(-1, True) + eps) ** .5 * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn, self.norm1, self.norm2, self.ff, self.nf = MultiHeadAttention(d_model, n_heads), nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)), norm_first

    def forward(self, x):
        return (y := x + self.attn(self.norm1(x))) + self.ff(self.norm2(y)) if self.nf else self.norm2((y := self.norm1(x + self.attn(x))) + self.ff(y))
