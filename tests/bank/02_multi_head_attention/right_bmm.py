# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_heads):
    shape = x.shape
    if shape[-1] % n_heads != 0:
        raise ValueError(f"d_model={shape[-1]} n_heads={n_heads}")
    flat = x.reshape(-1, shape[-2], n_heads, shape[-1] // n_heads)
    flat = flat.permute(0, 2, 1, 3)
    return flat.reshape(*shape[:-2], n_heads, shape[-2], shape[-1] // n_heads)


def merge_heads(x):
    shape = x.shape
    flat = x.reshape(-1, *shape[-3:]).permute(0, 2, 1, 3)
    return flat.reshape(shape[:-3] + (shape[-2], shape[-3] * shape[-1]))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model={d_model} n_heads={n_heads}")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        leading = x.shape[:-2]
        seq, d_model = x.shape[-2:]
        x = x.reshape(-1, seq, d_model)
        batch = x.shape[0]
        q, k, v = torch.split(self.qkv(x), d_model, dim=2)

        def to_batch(t):
            t = t.reshape(batch, seq, self.n_heads, self.d_head).transpose(1, 2)
            return t.reshape(batch * self.n_heads, seq, self.d_head)

        q, k, v = to_batch(q), to_batch(k), to_batch(v)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d_head)
        context = torch.bmm(F.softmax(scores, dim=2), v)
        context = context.view(batch, self.n_heads, seq, self.d_head)
        context = context.transpose(1, 2).reshape(batch, seq, d_model)
        return self.out_proj(context).reshape(*leading, seq, d_model)
