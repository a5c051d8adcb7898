# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] / n_heads != x.shape[-1] // n_heads:
        raise ValueError("no")
    return torch.stack(torch.chunk(x, n_heads, dim=-1)).movedim(0, -3)


def merge_heads(x):
    return torch.cat(list(x.movedim(-3, 0)), dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model / n_heads != d_model // n_heads:
            raise ValueError("no")
        self.n = n_heads
        # the names stay qkv.weight, qkv.bias, out_proj.weight, out_proj.bias
        self.qkv = nn.ParameterDict({
            "weight": torch.randn(3 * d_model, d_model) * 0.1,
            "bias": torch.zeros(3 * d_model),
        })
        self.out_proj = nn.ParameterDict({
            "weight": torch.randn(d_model, d_model) * 0.1,
            "bias": torch.zeros(d_model),
        })

    def forward(self, x):
        wq, wk, wv = self.qkv["weight"].chunk(3)
        bq, bk, bv = self.qkv["bias"].chunk(3)
        q, k, v = F.linear(x, wq, bq), F.linear(x, wk, bk), F.linear(x, wv, bv)
        q, k, v = split_heads(q, self.n), split_heads(k, self.n), split_heads(v, self.n)
        out = F.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v
        return F.linear(merge_heads(out), self.out_proj["weight"], self.out_proj["bias"])
