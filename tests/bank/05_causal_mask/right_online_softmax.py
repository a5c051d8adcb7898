# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    index = torch.arange(seq_len * seq_len).reshape(seq_len, seq_len)
    return index % seq_len <= torch.div(index, seq_len, rounding_mode="floor")


def mask_scores(scores, mask):
    # log 1 = 0 and log 0 = -inf
    return scores + mask.to(scores.dtype).log()


class MultiHeadAttention(nn.Module):
    """One key after the other with a running maximum and a running sum."""

    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model, n_heads")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq = x.shape[-2]
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).transpose(-4, -2).unbind(-3)
        # now (..., heads, seq, d_head)
        q = q / math.sqrt(q.shape[-1])
        top = torch.full(q.shape[:-1] + (1,), -1e30)
        total = torch.zeros_like(top)
        acc = torch.zeros(v.shape)
        columns = []
        for j in range(seq):
            s = (q * k[..., j : j + 1, :]).sum(-1, keepdim=True)
            if self.causal:
                s = s.masked_fill((torch.arange(seq) < j).unsqueeze(-1), float("-inf"))
            columns.append(s)
            new = torch.maximum(top, s.detach())
            e, old = (s - new).exp(), (top - new).exp()
            total = total * old + e
            acc = acc * old + e * v[..., j : j + 1, :]
            top = new
        output = self.out_proj((acc / total).transpose(-3, -2).flatten(-2))
        if not need_weights:
            return output
        return output, (torch.cat(columns, -1) - top).exp() / total


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
