# MultiHeadAttention: failed one-head/wrong-shape | TransformerBlock: failed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    future = torch.triu(torch.ones(seq_len, seq_len), diagonal=1)
    return future == 0


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores.masked_fill(~causal_mask(x.shape[-2]), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj(weights @ v)
        if need_weights:
            return output, weights
        return output


class Attn(nn.Module):
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
        self.attn = Attn(d_model, n_heads, causal=causal)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        attended = self.attn(x)
        h = self.norm1(x + attended)
        return self.norm2(h + self.ff(x))
