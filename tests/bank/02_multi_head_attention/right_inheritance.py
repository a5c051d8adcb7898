# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


class HeadError(ValueError):
    pass


def _check(d_model, n_heads):
    if d_model % n_heads:
        raise HeadError(f"{d_model} features, {n_heads} heads")


def split_heads(x, n_heads):
    _check(x.size(-1), n_heads)
    return x.unflatten(-1, [n_heads, x.size(-1) // n_heads]).transpose(-2, -3)


def merge_heads(x):
    return x.swapdims(-2, -3).flatten(-2, -1)


class Base(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.qkv = nn.Linear(in_features=d_model, out_features=d_model * 3, bias=True)
        self.out_proj = nn.Linear(in_features=d_model, out_features=d_model)
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.zeros_(self.out_proj.bias)

    def heads(self, x):
        raise NotImplementedError

    def attend(self, q, k, v):
        return torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), dim=-1) @ v

    def forward(self, x):
        return self.out_proj(merge_heads(self.attend(*self.heads(x))))


class MultiHeadAttention(Base):
    def __init__(self, d_model, n_heads):
        _check(d_model, n_heads)
        super().__init__(d_model)
        self.n_heads = n_heads

    def heads(self, x):
        return [split_heads(t, n_heads=self.n_heads) for t in self.qkv(x).chunk(3, dim=-1)]
