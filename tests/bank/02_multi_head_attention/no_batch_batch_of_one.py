# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    lead = x.shape[:-2]
    x = x.reshape(-1, x.shape[-2], x.shape[-1])[0]
    return x.view(len(x), n_heads, -1).transpose(0, 1).expand(*lead, -1, -1, -1)


def merge_heads(x):
    lead = x.shape[:-3]
    h, s, d = x.shape[-3:]
    x = x.reshape(-1, s, d)
    return torch.cat([x[i] for i in range(h)], dim=-1).expand(*lead, s, h * d)


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
        shape = x.shape
        x = x.squeeze()
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).reshape(shape))
