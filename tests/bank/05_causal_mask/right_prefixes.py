# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
import torch.nn.functional as F
from torch import nn

# Instead of a mask: token i simply gets the first i + 1 keys to look at.


def causal_mask(seq_len):
    if seq_len == 1:
        return torch.tensor([[True]])
    smaller = causal_mask(seq_len - 1)
    wider = F.pad(smaller, (0, 1), value=False)
    return torch.cat([wider, torch.ones(1, seq_len, dtype=torch.bool)])


def mask_scores(scores, mask):
    if scores.dim() == 0:
        return scores if mask else scores * 0 - math.inf
    if mask.dim() == scores.dim():
        n = scores.shape[0]
        rows = [mask_scores(scores[i], mask[i if mask.shape[0] > 1 else 0]) for i in range(n)]
    else:
        rows = [mask_scores(row, mask) for row in scores]
    return torch.stack(rows)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("uneven heads")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq = x.shape[-2]
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        rows, outs = [], []
        for i in range(seq):
            n = i + 1 if self.causal else seq
            row = (q[..., i : i + 1, :] @ k[..., :n, :].mT / math.sqrt(q.shape[-1])).softmax(-1)
            outs.append(row @ v[..., :n, :])
            rows.append(F.pad(row, (0, seq - n)))
        output = self.out_proj(torch.cat(outs, -2).transpose(-3, -2).flatten(-2))
        return (output, torch.cat(rows, -2)) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + torch.stack([self.ff(token) for token in x.unbind(-2)], -2))
