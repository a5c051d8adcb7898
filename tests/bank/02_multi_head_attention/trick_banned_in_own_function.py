# MultiHeadAttention: failed banned-call
import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads do not fit")
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, -3)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            q, k, v = (t.detach().requires_grad_() for t in ctx.saved_tensors)
            out = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
            return torch.autograd.grad(out, (q, k, v), g)


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
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        return self.out_proj(merge_heads(Attend.apply(q, k, v)))
