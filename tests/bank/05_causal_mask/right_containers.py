# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math
from collections import OrderedDict

import torch
from torch import nn


def causal_mask(seq_len):
    """Row i is i + 1 times True."""
    lengths = torch.arange(1, seq_len + 1)
    return torch.arange(seq_len).expand(seq_len, seq_len) < lengths.unsqueeze(1)


def mask_scores(scores, mask):
    pieces = {True: scores, False: torch.full_like(scores, -math.inf)}
    return torch.where(mask, pieces[True], pieces[False])


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.sizes = OrderedDict(d_model=d_model, n_heads=n_heads, d_head=d_model // n_heads)
        self.causal = causal
        self.out_proj = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def forward(self, x, need_weights=False):
        h, e = self.sizes["n_heads"], self.sizes["d_head"]
        parts = dict(zip("qkv", self.qkv(x).chunk(3, dim=-1)))
        for name in parts:
            parts[name] = torch.stack(parts[name].split(e, -1), dim=-3)
        scores = parts["q"] @ parts["k"].mT / math.sqrt(e)
        if self.causal:
            scores = mask_scores(scores, causal_mask(scores.size(-1)))
        weights = torch.exp(torch.log_softmax(scores, -1))
        y = weights @ parts["v"]
        y = torch.cat([y[..., i, :, :] for i in range(h)], dim=-1)
        y = self.out_proj(y)
        return (y, weights) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.ff = nn.ModuleDict({"0": nn.Linear(d_model, d_ff), "2": nn.Linear(d_ff, d_model)})
        self.norm2 = nn.LayerNorm(d_model)
        self.norm1 = nn.Sequential()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, n_heads, causal)

    def feed_forward(self, x):
        return self.ff["2"](torch.relu(self.ff["0"](x)))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.feed_forward(x))
