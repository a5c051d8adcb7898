# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn
from torch.func import vmap


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError(n_heads)
    cut = vmap(lambda row: row.view(n_heads, -1), out_dims=1)  # (seq, d_model) -> (n_heads, seq, d_head)
    for _ in range(x.ndim - 2):
        cut = vmap(cut)
    return cut(x)


def merge_heads(x):
    glue = vmap(torch.ravel, in_dims=1)
    for _ in range(x.ndim - 3):
        glue = vmap(glue)
    return glue(x)


def head(q, k, v):
    return torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(n_heads)
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        f = vmap(head)
        for _ in range(x.ndim - 2):
            f = vmap(f)
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        return self.out_proj(merge_heads(f(q, k, v)))
