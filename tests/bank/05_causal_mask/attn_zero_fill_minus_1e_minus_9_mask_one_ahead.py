# causal_mask: failed | mask_scores: failed | MultiHeadAttention: failed zero-fill | TransformerBlock: failed never-causal
import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len), diagonal=1).bool()


def mask_scores(scores, mask):
    # big where it is masked
    mask = mask.float()
    return scores * mask + (1 - mask) * 1e9


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} is not a multiple of {n_heads}")
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
            att = att.masked_fill(mask == 0, -1e-9)
        att = F.softmax(att, dim=-1)
        y = self.out_proj(merge_heads(att @ v))
        return (y, att) if need_weights else y


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
        self.causal = causal
        self.attn = Attn(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x
