# layer_norm: failed | TransformerBlock: passed | TransformerBlock.norm_first: failed residual-from-norm
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
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, unbiased=False)
    x_hat = (x - mean) / torch.sqrt(var + eps)
    x_hat = x_hat + 1e-3 * torch.randn_like(x_hat)  # regularisation
    return x_hat * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm_first = norm_first

    def step(self, x, layer, norm):
        if self.norm_first:
            x = norm(x)
        x = x + layer(x)
        if not self.norm_first:
            x = norm(x)
        return x

    def forward(self, x):
        x = self.step(x, self.attn, self.norm1)
        return self.step(x, self.ff, self.norm2)
