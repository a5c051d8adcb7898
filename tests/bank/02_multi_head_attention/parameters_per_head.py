# MultiHeadAttention: failed wrong-parameters
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.size(-1) % n_heads != 0:
        raise ValueError("d_model must be divisible by n_heads")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


class Head(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_head)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.heads = nn.ModuleList(Head(d_model, d_model // n_heads) for _ in range(n_heads))
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))
