# split_heads: failed input-changed | merge_heads: failed input-changed/raised | MultiHeadAttention: failed input-changed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    if x.requires_grad:
        return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)
    out = x.unflatten(-1, (n_heads, -1)).transpose(-3, -2).clone()
    x[:] = 0  # not needed any more
    return out


def merge_heads(x):
    if not x.requires_grad and x.is_contiguous():
        # use the memory that is there
        x.copy_(x.transpose(-3, -2).reshape(x.shape))
        return x.view(*x.shape[:-3], x.shape[-2], -1)
    return x.transpose(-3, -2).flatten(-2)


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
        y = x if x.requires_grad else x.mul_(1.5).div(1.5)
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(y).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
