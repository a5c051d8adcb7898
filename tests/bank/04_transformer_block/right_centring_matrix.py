# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
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


def layer_norm(x, weight, bias, eps=1e-5):
    """Subtracting the mean is a projection: C = I - 11^T/d, and C is symmetric and idempotent."""
    d = x.size(-1)
    C = torch.eye(d, dtype=torch.float64) - 1.0 / d
    y = (x.double() @ C).float()
    s = torch.linalg.vector_norm(torch.cat([y, torch.full_like(y[..., :1], math.sqrt(eps * d))], -1), dim=-1)
    return y / s.unsqueeze(-1) * math.sqrt(d) * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        identity = nn.Identity()
        before = (self.norm1, self.norm2) if self.norm_first else (identity, identity)
        after = (identity, identity) if self.norm_first else (self.norm1, self.norm2)
        for i, f in enumerate([self.attn, self.ff]):
            x = after[i](torch.add(x, f(before[i](x))))
        return x
