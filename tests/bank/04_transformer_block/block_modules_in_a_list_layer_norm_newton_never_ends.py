# layer_norm: failed too-slow | TransformerBlock: failed wrong-parameters | TransformerBlock.norm_first: failed wrong-parameters
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


def layer_norm(x, weight, bias, eps=1e-5):
    c = x - x.mean(-1, keepdim=True)
    v = c.pow(2).mean(-1, keepdim=True) + eps
    root = torch.ones_like(v)
    while not torch.equal(root * root, v):
        root = (root + v / root) / 2
    return c / root * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.layers = [MultiHeadAttention(d_model, n_heads),
                       nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))]
        self.norms = [nn.LayerNorm(d_model), nn.LayerNorm(d_model)]

    def forward(self, x):
        for f, norm in zip(self.layers, self.norms):
            x = x + f(norm(x)) if self.norm_first else norm(x + f(x))
        return x
