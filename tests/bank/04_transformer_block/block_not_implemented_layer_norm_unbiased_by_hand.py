# layer_norm: failed unbiased-variance | TransformerBlock: missing not-implemented | TransformerBlock.norm_first: missing not-implemented
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads != 0")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        d = x.shape[-1] // self.n_heads
        q, k, v = self.qkv(x).split(x.shape[-1], dim=-1)
        q = q.unflatten(-1, (self.n_heads, d))
        k = k.unflatten(-1, (self.n_heads, d))
        v = v.unflatten(-1, (self.n_heads, d))
        scores = torch.einsum("...qhd,...khd->...hqk", q, k) / math.sqrt(d)
        out = torch.einsum("...hqk,...khd->...qhd", scores.softmax(-1), v)
        return self.out_proj(out.flatten(-2))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError


def layer_norm(x, weight, bias, eps=1e-5):
    d = x.shape[-1]
    mean = x.sum(-1, keepdim=True) / d
    var = ((x - mean) ** 2).sum(-1, keepdim=True) / (d - 1)
    return (x - mean) / (var + eps).sqrt() * weight + bias
