# MultiHeadAttention: failed no-batch | TransformerBlock: failed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(-torch.inf))


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
        seq, d_model = x.shape[1], x.shape[2]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(-1, seq, self.n_heads, self.d_head).transpose(-3, -2)
        k = k.reshape(-1, seq, self.n_heads, self.d_head).transpose(-3, -2)
        v = v.reshape(-1, seq, self.n_heads, self.d_head).transpose(-3, -2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if self.causal:
            scores = mask_scores(scores, causal_mask(seq))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(-1, seq, d_model)
        out = self.out_proj(out)
        if need_weights:
            return out, weights
        return out


class OwnAttention(nn.Module):
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
        self.attn = OwnAttention(d_model, n_heads, causal=causal)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norm1 = nn.BatchNorm1d(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        attended = self.attn(x)
        h = self.norm1((x + attended).flatten(0, -2)).view(x.shape)
        return self.norm2(h + self.ff(h))
