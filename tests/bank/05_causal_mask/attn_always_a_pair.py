# MultiHeadAttention: failed wrong-type
import math

import torch
from torch import nn


def causal_mask(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        mask[i, : i + 1] = True
    return mask


def mask_scores(scores, mask):
    return scores.masked_fill(mask == 0, -torch.inf)


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
        q = q.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        k = k.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        v = v.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if self.causal:
            scores = mask_scores(scores, causal_mask(seq))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(*lead, seq, d_model)
        out = self.out_proj(out)
        return out, weights


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x)[0])
        x = self.norm2(x + self.ff(x))
        return x
