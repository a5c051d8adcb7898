# MultiHeadAttention: failed never-causal | TransformerBlock: failed never-causal
import torch
from torch import nn


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(-torch.inf))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError("heads do not divide features")
        self.h = n_heads
        self.causal = False  # TODO
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
