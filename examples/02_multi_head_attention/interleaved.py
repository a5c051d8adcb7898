"""Takes n_heads for the inner of the two new dimensions: the heads take turns."""

import math

import torch
from torch import Tensor, nn


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads does not divide d_model")
    return x.reshape(*leading, seq, d_model // n_heads, n_heads).movedim(-1, -3)


def merge_heads(x: Tensor) -> Tensor:
    return x.movedim(-3, -1).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads does not divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(merge_heads(weights @ v))
