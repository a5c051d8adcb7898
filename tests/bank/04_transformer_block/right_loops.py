# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        d = q.shape[-1] // self.n_heads
        heads = []
        for h in range(self.n_heads):
            cut = slice(h * d, (h + 1) * d)
            scores = q[..., cut] @ k[..., cut].mT / math.sqrt(d)
            heads.append(torch.softmax(scores, -1) @ v[..., cut])
        return self.out_proj(torch.cat(heads, -1))


def layer_norm(x, weight, bias, eps=1e-5):
    if x.dim() > 1:
        return torch.stack([layer_norm(part, weight, bias, eps) for part in x])
    # one token
    d = len(x)
    mean = sum(x) / d
    var = sum((value - mean) ** 2 for value in x) / d
    return torch.stack([(x[i] - mean) / torch.sqrt(var + eps) * weight[i] + bias[i] for i in range(d)])


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if x.dim() > 2:
            return torch.stack([self.forward(sequence) for sequence in x])
        a = self.attn(self.norm1(x) if self.norm_first else x)
        tokens = []
        for i in range(len(x)):
            t = x[i] + a[i]
            if not self.norm_first:
                t = self.norm1(t)
            f = t
            if self.norm_first:
                f = self.norm2(f)
            for layer in self.ff:
                f = layer(f)
            t = t + f
            if not self.norm_first:
                t = self.norm2(t)
            tokens.append(t)
        return torch.stack(tokens)
