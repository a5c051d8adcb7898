# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
from __future__ import annotations

import math
import warnings
from typing import Final

import torch
from torch import Tensor, nn


def _validate(d_model: int, n_heads: int) -> int:
    if not isinstance(n_heads, int) or isinstance(n_heads, bool):
        raise TypeError(f"n_heads must be an int, not {type(n_heads).__name__}")
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise ValueError(f"n_heads ({n_heads}) must divide d_model ({d_model})")
    return d_model // n_heads


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError("x must be a tensor")
    if x.ndim < 2:
        raise ValueError("x must be at least (seq, d_model)")
    d_head: int = _validate(x.shape[-1], n_heads)
    out: Tensor = x.reshape(*x.shape[:-1], n_heads, d_head).transpose(-3, -2)
    assert out.shape == (*x.shape[:-2], n_heads, x.shape[-2], d_head)
    return out


def merge_heads(x: Tensor) -> Tensor:
    if x.ndim < 3:
        raise ValueError("x must be at least (n_heads, seq, d_head)")
    n_heads, seq, d_head = x.shape[-3:]
    out: Tensor = x.transpose(-3, -2).reshape(*x.shape[:-3], seq, n_heads * d_head)
    assert out.shape[-1] == n_heads * d_head
    return out


class MultiHeadAttention(nn.Module):
    n_heads: Final[int]

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        self.d_head = _validate(d_model, n_heads)
        self.d_model = d_model
        self.n_heads = n_heads
        self.qkv: nn.Linear = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.out_proj: nn.Linear = nn.Linear(d_model, d_model, bias=bias)

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, n_heads={self.n_heads}"

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self.d_model:
            raise ValueError(f"expected {self.d_model} features, got {x.shape[-1]}")
        if not torch.isfinite(x).all():
            warnings.warn("x is not finite")
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d_head), dim=-1)
        if not torch.allclose(weights.sum(-1), torch.ones(()), atol=1e-4):
            warnings.warn("weights do not sum to 1")
        result: Tensor = self.out_proj(merge_heads(weights @ v))
        assert result.shape == x.shape, (result.shape, x.shape)
        return result
