# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


def halves(x, n_heads):
    """List of the heads, cut off one at a time."""
    if n_heads == 1:
        return [x]
    d_head = x.shape[-1] // n_heads
    return [x[..., :d_head]] + halves(x[..., d_head:], n_heads - 1)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("does not divide")
    if x.ndim > 2:
        return torch.stack([split_heads(entry, n_heads) for entry in x])
    return torch.stack(halves(x, n_heads))


def merge_heads(x):
    if x.ndim > 3:
        return torch.stack([merge_heads(entry) for entry in x])
    if len(x) == 1:
        return x[0]
    return torch.cat([x[0], merge_heads(x[1:])], dim=-1)


def attend(q, k, v):
    """softmax(q kT / sqrt(d)) v, running over the keys and keeping the maximum so far."""
    top = torch.full(q.shape[:-1], -math.inf)
    total = torch.zeros(q.shape[:-1])
    out = torch.zeros_like(q)
    for j in range(k.shape[-2]):
        s = (q * k[..., j : j + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, s).detach()
        shrink, e = torch.exp(top - new), torch.exp(s - new)
        total = total * shrink + e
        out = out * shrink[..., None] + e[..., None] * v[..., j : j + 1, :]
        top = new
    return out / total[..., None]


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("does not divide")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = [split_heads(t, self.n_heads) for t in self.qkv(x).split(x.shape[-1], -1)]
        return self.out_proj(merge_heads(attend(q, k, v)))
