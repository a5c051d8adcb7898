# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *lead, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("d_model must be a multiple of n_heads")
    out = x.clone()
    out = out.view(*lead, seq, n_heads, d_model // n_heads)
    out.transpose_(-3, -2)
    return out


def merge_heads(x):
    *lead, n_heads, seq, d_head = x.shape
    out = torch.empty(*lead, seq, n_heads, d_head, dtype=x.dtype)
    out.transpose(-3, -2).copy_(x)
    return out.view(*lead, seq, -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        x = self.qkv(x)
        q, k, v = x.split(x.shape[-1] // 3, dim=-1)
        q = q / math.sqrt(q.shape[-1] // self.n_heads)
        q, k, v = split_heads(q, self.n_heads), split_heads(k, self.n_heads), split_heads(v, self.n_heads)
        scores = q @ k.mT
        scores -= scores.detach().amax(-1, keepdim=True)
        weights = scores.exp_()
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros(v.shape)
        for h in range(self.n_heads):
            out[..., h, :, :] += weights[..., h, :, :] @ v[..., h, :, :]
        y = merge_heads(out)
        y = self.out_proj(y)
        y += 0
        return y
