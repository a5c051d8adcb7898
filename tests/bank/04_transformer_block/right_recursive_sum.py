# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


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
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        heads = torch.softmax(scores, dim=-1) @ v
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


def _sum(x):
    """adds halves of the last dimension until one feature is left"""
    n = x.shape[-1]
    if n == 1:
        return x
    return _sum(x[..., : n // 2]) + _sum(x[..., n // 2 :])


def _mean(x):
    return _sum(x) / x.shape[-1]


def layer_norm(x, weight, bias, eps=1e-5):
    mean = _mean(x)
    variance = _mean((x - mean) ** 2)
    std = torch.exp(0.5 * torch.log(variance + eps))
    return torch.lerp(bias, weight * (x - mean) / std + bias, 1.0)


def compose(*functions):
    def run(x):
        for f in functions:
            x = f(x)
        return x

    return run


def residual(f):
    return lambda x: x + f(x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if self.norm_first:
            steps = residual(compose(self.norm1, self.attn)), residual(compose(self.norm2, self.ff))
        else:
            steps = residual(self.attn), self.norm1, residual(self.ff), self.norm2
        return compose(*steps)(x)
