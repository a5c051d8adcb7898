# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    additive = torch.full((seq_len, seq_len), float("-inf")).triu(diagonal=1)
    return additive == 0


def mask_scores(scores, mask):
    bias = torch.zeros(mask.shape).masked_fill(mask.logical_not(), float("-inf"))
    return scores + bias


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        self.d_k, remainder = divmod(d_model, n_heads)
        if remainder != 0:
            raise ValueError("d_model / n_heads is not whole")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        n = x.size(-2)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.unflatten(-1, (self.n_heads, self.d_k)).transpose(-2, -3)
        k = k.unflatten(-1, (self.n_heads, self.d_k)).transpose(-2, -3)
        v = v.unflatten(-1, (self.n_heads, self.d_k)).transpose(-2, -3)
        bias = torch.zeros(n, n)
        if self.causal:
            # like GPT-2: keep where 1, otherwise a very large negative number
            bias = (1.0 - causal_mask(n).float()) * -1e9
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d_k) + bias
        weights = scores.softmax(dim=-1)
        y = self.out_proj((weights @ v).transpose(-2, -3).reshape(x.shape))
        return (y, weights) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        shortcut = x
        x = self.norm1(self.attn(x) + shortcut)
        shortcut = x
        x = self.norm2(self.ff(x) + shortcut)
        return x
