# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len).tril() > 0.5


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads != 0")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.register_buffer("tril", causal_mask(4).view(1, 4, 4))  # grows when needed
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x, need_weights=False):
        T = x.shape[-2]
        if self.tril.shape[-1] < T:
            self.tril = causal_mask(2 * T).unsqueeze(0)
        self.calls += 1
        q, k, v = self.qkv(x).chunk(3, -1)
        q = q.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
        k = k.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
        v = v.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        if self.causal:
            scores = mask_scores(scores, self.tril[0, :T, :T])
        weights = scores.softmax(-1)
        output = self.out_proj((weights @ v).transpose(-3, -2).flatten(-2))
        if need_weights is False:
            return output
        return output, weights


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.register_buffer("version", torch.tensor([5]))
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model), nn.Dropout(0.0))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.ff(x))
