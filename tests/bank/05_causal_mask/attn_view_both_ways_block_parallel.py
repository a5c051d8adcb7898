# MultiHeadAttention: failed no-transpose | TransformerBlock: failed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    i = torch.arange(seq_len)
    return i[:, None] >= i[None, :]


def mask_scores(scores, mask):
    out = scores.clone()
    out[~mask.expand(scores.shape)] = float("-inf")
    return out


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be divisible by n_heads")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        *lead, seq, d_model = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(*lead, self.n_heads, seq, self.d_head)
        k = k.reshape(*lead, self.n_heads, seq, self.d_head)
        v = v.reshape(*lead, self.n_heads, seq, self.d_head)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if self.causal:
            scores = mask_scores(scores, causal_mask(seq))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).reshape(*lead, seq, d_model)
        out = self.out_proj(out)
        if need_weights:
            return out, weights
        return out


class OwnAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError("heads do not divide features")
        self.h = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        n = x.shape[-2]
        qkv = self.qkv(x).unflatten(-1, (3, self.h, -1))
        q, k, v = qkv.unbind(-3)  # (..., seq, heads, d_head)
        logits = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
        if self.causal:
            bias = torch.full((n, n), float("-inf")).triu(1)
            logits = logits + bias
        probs = logits.softmax(-1)
        mixed = torch.einsum("...hqk,...khd->...qhd", probs, v)
        y = self.out_proj(mixed.flatten(-2))
        if not need_weights:
            return y
        return y, probs


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = OwnAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm2(self.norm1(x + self.attn(x) + self.ff(x)))
        return x
