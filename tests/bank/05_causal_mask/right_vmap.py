# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    n = torch.arange(seq_len)
    return torch.vmap(lambda i: n <= i)(n)


def mask_scores(scores, mask):
    return torch.where(mask, scores, -math.inf)


def one_head(q, k, v, mask):
    weights = torch.softmax(mask_scores(q @ k.T / math.sqrt(q.shape[-1]), mask), -1)
    return weights @ v, weights


all_heads = torch.vmap(one_head, in_dims=(1, 1, 1, None), out_dims=(1, 0))


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
        if x.dim() > 2:
            # peel the first dimension off and come back
            both = [self.forward(part, True) for part in x]
            output, weights = (torch.stack(t) for t in zip(*both))
        else:
            n = len(x)
            mask = causal_mask(n) if self.causal else torch.ones(n, n, dtype=torch.bool)
            q, k, v = self.qkv(x).view(n, 3, self.n_heads, -1).unbind(1)
            heads, weights = all_heads(q, k, v, mask)
            output = self.out_proj(heads.reshape(n, -1))
        return (output, weights) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.ff(x))
