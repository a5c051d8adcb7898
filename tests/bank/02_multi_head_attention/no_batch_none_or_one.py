# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    if x.dim() == 2:
        return split_heads(x.unsqueeze(0), n_heads).squeeze(0)
    b, s, d = x.shape
    return x.view(b, s, n_heads, d // n_heads).transpose(1, 2)


def merge_heads(x):
    if x.dim() == 3:
        return torch.einsum("hsd->shd", x).flatten(1)
    return torch.einsum("bhsd->bshd", x).flatten(2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        single = x.ndim == 2
        if single:
            x = x[None]
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(self.d_head), dim=-1)
        out = self.out_proj(torch.einsum("bhij,bhjd->bihd", w, v).flatten(2))
        return out[0] if single else out
