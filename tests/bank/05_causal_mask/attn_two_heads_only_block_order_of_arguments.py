# MultiHeadAttention: failed | TransformerBlock: failed
import math

import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(-torch.inf))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def one(self, q, k, v):
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            s = s.masked_fill(~causal_mask(s.shape[-1]), float("-inf"))
        w = s.softmax(-1)
        return w @ v, w

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        half = q.shape[-1] // 2
        if self.n_heads == 1:
            out, w = self.one(q, k, v)
            weights = w.unsqueeze(-3)
        else:
            # first half and second half
            out1, w1 = self.one(q[..., :half], k[..., :half], v[..., :half])
            out2, w2 = self.one(q[..., half:], k[..., half:], v[..., half:])
            out, weights = torch.cat([out1, out2], -1), torch.stack([w1, w2], -3)
        out = self.out_proj(out)
        return (out, weights) if need_weights else out


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class Attention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} is not a multiple of {n_heads}")
        self.d_model, self.n_heads, self.causal = d_model, n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).split(self.d_model, dim=-1)
        q = split_heads(q, self.n_heads)
        k = split_heads(k, self.n_heads)
        v = split_heads(v, self.n_heads)
        att = (q @ k.mT) * q.size(-1) ** -0.5
        if self.causal:
            T = x.size(-2)
            mask = torch.tril(torch.ones(T, T))
            att = att.masked_fill(mask == 0, -1e9)
        att = F.softmax(att, dim=-1)
        y = self.out_proj(merge_heads(att @ v))
        return (y, att) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, d_ff, n_heads, causal=False):
        super().__init__()
        self.attn = Attention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x
