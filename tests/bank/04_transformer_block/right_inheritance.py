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
    x = x - torch.mean(x, -1, True)
    return x * weight / torch.sqrt(torch.mean(x * x, -1, True) + eps) + bias


class Base(nn.Module):
    first = None

    def __init__(self, d_model, n_heads, d_ff):
        nn.Module.__init__(self)
        self.add_module("attn", MultiHeadAttention(d_model=d_model, n_heads=n_heads))
        for name in ("norm1", "norm2"):
            self.add_module(name, nn.LayerNorm(d_model))
        self.add_module("ff", nn.ModuleDict({"0": nn.Linear(d_model, d_ff), "2": nn.Linear(d_ff, d_model)}))

    def mlp(self, x):
        return self.ff["2"](torch.relu(self.ff["0"](x)))


class TransformerBlock(Base):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__(d_model, n_heads, d_ff)
        self.first = norm_first

    def sublayer(self, x, f, norm):
        y = f(norm(x) if self.first else x)
        y = y + x
        if self.first:
            return y
        return norm(y)

    def forward(self, x):
        x = self.sublayer(x, self.attn, self.norm1)
        x = self.sublayer(x, self.mlp, self.norm2)
        return x
