# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        *leading, seq, d_model = x.shape
        qkv = self.qkv(x).reshape(*leading, seq, 3, self.n_heads, self.d_head)
        q, k, v = qkv.movedim(-3, 0).transpose(-3, -2)
        weights = torch.softmax(q @ k.mT * self.d_head**-0.5, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(*leading, seq, d_model)
        return self.out_proj(out)


class LayerNormFunction(nn.Module):
    def forward(self, x, weight, bias, eps=1e-5):
        pieces = x.unbind(dim=-1)
        mean = torch.stack(pieces).mean(0)
        variance = torch.stack([(p - mean) ** 2 for p in pieces]).mean(0)
        scale = 1 / (variance + eps).sqrt()
        return torch.stack([(p - mean) * scale for p in pieces], dim=-1) * weight + bias


layer_norm = LayerNormFunction()


class PostNorm(nn.Module):
    def apply_to(self, x, attn, ff, norm1, norm2):
        x = norm1(x + attn(x))
        return norm2(x + ff(x))


class PreNorm(nn.Module):
    def apply_to(self, x, attn, ff, norm1, norm2):
        x = x + attn(norm1(x))
        return x + ff(norm2(x))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.ModuleList([nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)])
        self.order = (PreNorm if norm_first else PostNorm)()

    def mlp(self, x):
        for layer in self.ff:
            x = layer(x)
        return x

    def forward(self, x):
        return self.order.apply_to(x, self.attn, self.mlp, self.norm1, self.norm2)
