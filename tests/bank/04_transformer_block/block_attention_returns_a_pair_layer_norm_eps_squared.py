# layer_norm: failed | TransformerBlock: failed | TransformerBlock.norm_first: failed raised
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        heads = torch.softmax(scores, dim=-1) @ v
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if self.norm_first:
            x = x + (self.attn(self.norm1(x)), None)
            x = x + self.ff(self.norm2(x))
        else:
            a, _ = self.attn(x)
            x = self.norm1(x + a)
            x = self.norm2(x + self.ff(x))
        return x


def layer_norm(x, weight, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    var = (centred ** 2).mean(-1, keepdim=True)
    return centred / torch.sqrt(var + eps ** 2) * weight + bias
