# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        return x.reshape(*x.shape[:-1], n, x.shape[-1] // n).transpose(-3, -2).contiguous()

    @staticmethod
    def backward(ctx, g):
        return g.transpose(-3, -2).flatten(-2), None


class Merge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[-3]
        return x.transpose(-3, -2).flatten(-2)

    @staticmethod
    def backward(ctx, g):
        return g.unflatten(-1, (ctx.n, -1)).transpose(-3, -2)


class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        p = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        g_p = g @ v.mT
        g_s = p * (g_p - (g_p * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
        return g_s @ k, g_s.mT @ q, p.mT @ g


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads")
    return Split.apply(x, n_heads)


def merge_heads(x):
    return Merge.apply(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (Split.apply(t, self.n_heads) for t in self.qkv(x).chunk(3, -1))
        return self.out_proj(Merge.apply(Attend.apply(q, k, v)))
