# split_heads: failed no-batch | merge_heads: failed no-batch | MultiHeadAttention: failed no-batch
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.view(seq, n_heads, d_model // n_heads).transpose(0, 1)


def merge_heads(x):
    n_heads, seq, d_head = x.shape
    return x.transpose(0, 1).reshape(seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        seq, d_model = x.shape
        q, k, v = self.qkv(x).view(seq, 3, self.n_heads, self.d_head).unbind(1)
        w = torch.softmax(torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(self.d_head), dim=-1)
        return self.out_proj(torch.einsum("hij,jhd->ihd", w, v).reshape(seq, d_model))
