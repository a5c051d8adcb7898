# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
from math import sqrt

import torch
from torch import nn
from torch.nn import LayerNorm, Linear, ReLU, Sequential


def causal_mask(seq_len):
    mask = torch.empty(seq_len, seq_len, dtype=torch.bool)
    for i, row in enumerate(mask):
        row[: i + 1] = True
        row[i + 1 :] = False
    return mask


def mask_scores(scores, mask):
    masked = scores.clone()
    masked.masked_fill_(~mask, float("-inf"))
    return masked


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads")
        self.args = [d_model, n_heads, d_model // n_heads]
        self.causal = causal
        self.qkv = Linear(d_model, d_model + d_model + d_model)
        self.out_proj = Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        d_model, n_heads, d_head = self.args
        heads = self.qkv(x).split(d_head, dim=-1)  # 3 * n_heads pieces
        q = torch.stack(heads[:n_heads], dim=-3)
        k = torch.stack(heads[n_heads : 2 * n_heads], dim=-3)
        v = torch.stack(heads[2 * n_heads :], dim=-3)
        scores = (q / sqrt(d_head)).matmul(k.transpose(-2, -1))
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = nn.Softmax(dim=-1)(scores)
        result = [self.out_proj(torch.cat(weights.matmul(v).unbind(dim=-3), dim=-1)), weights]
        return result if need_weights else result[0]


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.ff = Sequential(Linear(d_model, d_ff), ReLU(), Linear(d_ff, d_model))

    def forward(self, x):
        output, _ = self.attn(x, need_weights=True)
        output = self.norm1(output + x)
        return self.norm2(self.ff(output) + output)
