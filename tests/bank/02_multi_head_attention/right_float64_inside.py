# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn
from torch.nn.functional import linear


def split_heads(x, n_heads):
    wide = x.double()
    quotient, rest = divmod(wide.shape[-1], n_heads)
    if rest:
        raise ValueError("not divisible")
    return torch.stack(wide.split(quotient, dim=-1), dim=-3).to(x.dtype)


def merge_heads(x):
    return torch.cat(x.double().unbind(-3), dim=-1).float()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_head, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError("not divisible")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        dtype = x.dtype
        x = linear(x.double(), self.qkv.weight.double(), self.qkv.bias.double())
        q, k, v = (t.unflatten(-1, (self.n_heads, self.d_head)).swapaxes(-3, -2) for t in x.chunk(3, -1))
        w = torch.softmax(q.matmul(k.mT) / math.sqrt(self.d_head), -1, dtype=torch.float64)
        out = w.matmul(v).swapaxes(-3, -2).flatten(-2)
        return linear(out, self.out_proj.weight.double(), self.out_proj.bias.double()).to(dtype)
