# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import functools
import math

import torch
from torch import nn


@functools.lru_cache(maxsize=None)
def _mask(seq_len):
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()


def causal_mask(seq_len):
    return _mask(seq_len).clone()


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.causal = causal
        self.masks = {}
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def mask(self, n):
        if n not in self.masks:
            self.masks[n] = causal_mask(n) if self.causal else torch.ones(n, n, dtype=torch.bool)
        return self.masks[n]

    def forward(self, x, need_weights=False):
        n, d = x.shape[-2:]
        q, k, v = self.qkv(x).reshape(-1, n, 3, self.n_heads, d // self.n_heads).permute(2, 0, 3, 1, 4)
        s = mask_scores(q @ k.mT / math.sqrt(d / self.n_heads), self.mask(n))
        w = s.softmax(-1)
        out = self.out_proj((w @ v).transpose(1, 2).reshape(x.shape))
        if need_weights:
            return out, w.reshape(x.shape[:-2] + w.shape[1:])
        return out


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        h = self.norm1(x + self.attn(x))
        return self.norm2(h + self.ff(h))
