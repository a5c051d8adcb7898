# layer_norm: failed wrong-dim/no-batch | TransformerBlock: failed no-residual | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"{n_heads} heads do not divide {d_model} features")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.n_heads) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.out_proj(merge_heads(torch.softmax(scores, dim=-1) @ v))


def layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(1).unsqueeze(1)
    var = x.var(1, unbiased=False).unsqueeze(1)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if not self.norm_first:
            h = self.attn(x)
            h = self.norm1(h)
            h = self.ff(h)
            return self.norm2(h)
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))
