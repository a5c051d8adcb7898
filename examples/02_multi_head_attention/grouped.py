"""Merges one sequence only, and cuts each head's features into queries, keys and values."""

import math

import torch
from torch import Tensor, nn


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads does not divide d_model")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)


def merge_heads(x: Tensor) -> Tensor:
    return x.transpose(0, 1).reshape(x.shape[1], -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads does not divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = split_heads(self.qkv(x), self.n_heads).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.out_proj(torch.cat((weights @ v).unbind(-3), dim=-1))
