# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    if n_heads == 1:
        return x.unsqueeze(-3)
    half = d_model // 2
    return torch.stack([x[..., :half], x[..., half:]], dim=-3)


def merge_heads(x):
    if x.shape[-3] == 1:
        return x.squeeze(-3)
    return torch.cat([x[..., 0, :, :], x[..., 1, :, :]], dim=-1)


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
        d = x.shape[-1]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if self.n_heads == 1:
            return self.out_proj(torch.softmax(q @ k.mT / math.sqrt(d), -1) @ v)
        h = d // 2
        first = torch.softmax(q[..., :h] @ k[..., :h].mT / math.sqrt(h), -1) @ v[..., :h]
        second = torch.softmax(q[..., h:] @ k[..., h:].mT / math.sqrt(h), -1) @ v[..., h:]
        return self.out_proj(torch.cat([first, second], dim=-1))
