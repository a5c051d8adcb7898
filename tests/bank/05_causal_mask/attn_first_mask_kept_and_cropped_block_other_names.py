# MultiHeadAttention: failed | TransformerBlock: failed wrong-parameters
import math

import torch
from torch import nn


def causal_mask(seq_len):
    future = torch.triu(torch.ones(seq_len, seq_len), diagonal=1)
    return future == 0


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    MASK = None  # computed once for all

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
            if MultiHeadAttention.MASK is None:
                MultiHeadAttention.MASK = causal_mask(seq)
            m = MultiHeadAttention.MASK[:seq, :seq]
            scores = mask_scores(scores, torch.nn.functional.pad(m, (0, seq - len(m), 0, seq - len(m)), value=True))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(*lead, seq, d_model)
        out = self.out_proj(out)
        if need_weights:
            return out, weights
        return out


class MaskedAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("bad number of heads")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq, d_model = x.shape[-2:]
        d_head = d_model // self.n_heads
        q, k, v = torch.split(self.qkv(x), d_model, dim=-1)
        outs, maps = [], []
        for h in range(self.n_heads):
            part = slice(h * d_head, (h + 1) * d_head)
            s = q[..., part] @ k[..., part].transpose(-1, -2) / d_head**0.5
            if self.causal:
                s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))
            w = torch.softmax(s, dim=-1)
            maps.append(w)
            outs.append(w @ v[..., part])
        y = self.out_proj(torch.cat(outs, dim=-1))
        if need_weights:
            return y, torch.stack(maps, dim=-3)
        return y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MaskedAttention(d_model, n_heads, causal)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.ln1(x + self.attn(x))
        x = self.ln2(x + self.mlp(x))
        return x
