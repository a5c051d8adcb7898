# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    mask = torch.ones((seq_len, seq_len), dtype=torch.bool)
    return torch.tril(mask, diagonal=0)


def mask_scores(scores, mask):
    keep = mask.expand_as(scores)
    return scores.masked_fill(keep.logical_not(), float("-inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.H = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def _fold(self, t, B, T):
        # (B, T, D) -> (B*H, T, D/H)
        return t.reshape(B, T, self.H, -1).permute(0, 2, 1, 3).reshape(B * self.H, T, -1)

    def forward(self, x, need_weights=False):
        lead = tuple(x.shape[:-2])
        T, D = x.shape[-2], x.shape[-1]
        B = math.prod(lead)
        qkv = self.qkv(x.reshape(B * T, D)).reshape(B, T, 3 * D)
        q = self._fold(qkv[..., :D], B, T)
        k = self._fold(qkv[..., D : 2 * D], B, T)
        v = self._fold(qkv[..., 2 * D :], B, T)
        base = torch.zeros(B * self.H, T, T)
        s = torch.baddbmm(base, q, k.transpose(1, 2), alpha=1 / math.sqrt(D // self.H))
        if self.causal:
            s = mask_scores(s, causal_mask(T).unsqueeze(0))
        p = torch.softmax(s, 2)
        o = torch.bmm(p, v).reshape(B, self.H, T, -1).permute(0, 2, 1, 3).reshape(B * T, D)
        o = torch.addmm(self.out_proj.bias, o, self.out_proj.weight.t()).reshape(*lead, T, D)
        if need_weights:
            return o, p.reshape(*lead, self.H, T, T)
        return o


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        out = self.norm1(torch.add(x, self.attn(x)))
        return self.norm2(torch.add(out, self.ff(out)))
