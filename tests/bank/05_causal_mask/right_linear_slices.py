# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    counts = torch.ones(seq_len, seq_len, dtype=torch.int64)
    return counts.cumsum(0) >= counts.cumsum(1)


def mask_scores(scores, mask):
    result = torch.full(scores.shape, -math.inf)
    everywhere = mask.expand(scores.shape)
    return result.masked_scatter(everywhere, scores[everywhere])


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model=} {n_heads=}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def project(self, x, which, head):
        first = which * self.d_model + head * self.d_head
        rows = slice(first, first + self.d_head)
        return F.linear(x, self.qkv.weight[rows], self.qkv.bias[rows])

    def forward(self, x, need_weights=False):
        total = self.out_proj.bias
        maps = []
        for h in range(self.n_heads):
            q, k, v = (self.project(x, which, h) for which in range(3))
            s = q @ k.mT / math.sqrt(self.d_head)
            if self.causal:
                s = mask_scores(s, causal_mask(x.shape[-2]))
            w = torch.softmax(s, dim=-1)
            maps.append(w)
            # the output projection is a sum over heads
            total = total + F.linear(w @ v, self.out_proj.weight[:, h * self.d_head : (h + 1) * self.d_head])
        return (total, torch.stack(maps, -3)) if need_weights else total


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        up, down = self.ff[0], self.ff[-1]
        return self.norm2(x + F.linear(F.relu(F.linear(x, up.weight, up.bias)), down.weight, down.bias))
