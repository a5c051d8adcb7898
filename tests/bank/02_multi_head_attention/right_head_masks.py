# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


def feature_mask(h, n_heads, d_model):
    d_head = d_model // n_heads
    f = torch.arange(d_model)
    return (f >= h * d_head) & (f < (h + 1) * d_head)


def split_heads(x, n_heads):
    d_model = x.shape[-1]
    if d_model % n_heads > 0:
        raise ValueError("d_model % n_heads > 0")
    heads = [x[..., feature_mask(h, n_heads, d_model)] for h in range(n_heads)]
    return torch.stack(heads, dim=x.ndim - 2)


def merge_heads(x):
    n_heads = x.size(-3)
    d_model = n_heads * x.size(-1)
    out = x.new_zeros(*x.shape[:-3], x.size(-2), d_model)
    for h in range(n_heads):
        wide = x.select(-3, h).repeat_interleave(n_heads, dim=-1)
        tiled = x.select(-3, h).repeat(*[1] * (x.ndim - 2), n_heads)
        assert wide.shape == tiled.shape
        out = torch.where(feature_mask(h, n_heads, d_model), tiled, out)
    return out


class MultiHeadAttention(nn.Module):
    # no splitting at all: zero the other heads' features
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError("d_model % n_heads > 0")
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        masks = torch.stack([feature_mask(h, n_heads, d_model) for h in range(n_heads)])
        self.register_buffer("masks", masks, persistent=False)
        self.register_buffer("root", torch.tensor(math.sqrt(d_model // n_heads)))

    def forward(self, x):
        q, k, v = self.qkv(x).tensor_split(3, dim=-1)
        total = 0
        for mask in self.masks:
            zero = torch.zeros(())
            scores = torch.where(mask, q, zero) @ k.transpose(-1, -2)
            total = total + torch.softmax(scores / self.root, dim=-1) @ torch.where(mask, v, zero)
        return self.out_proj(total)
