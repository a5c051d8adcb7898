# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
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
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = (x - mean).square().sum(-1, keepdim=True) / x.shape[-1]
    return (x - mean).div((variance + eps).sqrt()).mul(weight).add(bias)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, self.eps)


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff):
        super().__init__(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.ff = FeedForward(d_model, d_ff)
        self.norm_first = norm_first

    def _post(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.ff(x))

    def _pre(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))

    def forward(self, x):
        return {True: self._pre, False: self._post}[bool(self.norm_first)](x)
