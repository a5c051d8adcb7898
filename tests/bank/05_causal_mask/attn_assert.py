# MultiHeadAttention: failed no-value-error
import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len).tril().bool()


def mask_scores(scores, mask):
    blocked = torch.logical_not(mask)
    return torch.masked_fill(scores, blocked, -float("inf"))


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        assert d_model % n_heads == 0, "d_model must be a multiple of n_heads"
        self.d_model, self.n_heads, self.causal = d_model, n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).split(self.d_model, dim=-1)
        q = split_heads(q, self.n_heads)
        k = split_heads(k, self.n_heads)
        v = split_heads(v, self.n_heads)
        att = (q @ k.mT) * q.size(-1) ** -0.5
        if self.causal:
            T = x.size(-2)
            mask = torch.tril(torch.ones(T, T))
            att = att.masked_fill(mask == 0, -1e9)
        att = F.softmax(att, dim=-1)
        y = self.out_proj(merge_heads(att @ v))
        return (y, att) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError('d_model must be a multiple of n_heads')
        self.attn = MultiHeadAttention(d_model, n_heads, causal=causal)
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
        return self.norm2(h + self.ff(h))
