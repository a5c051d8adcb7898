# split_heads: failed no-gradient | merge_heads: failed no-gradient | MultiHeadAttention: failed no-gradient
import math

import torch
from torch import nn


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.shape = x.shape
        return x.unflatten(-1, (n, -1)).transpose(-3, -2).contiguous()

    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape), None


class Merge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.transpose(-3, -2).flatten(-2)

    @staticmethod
    def backward(ctx, g):
        return torch.ones(ctx.shape)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return 1.01 * g


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    return Split.apply(x, n_heads)


def merge_heads(x):
    return Merge.apply(x)


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
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(Double.apply(x)).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(self.d_head), dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
