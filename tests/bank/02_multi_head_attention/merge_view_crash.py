# merge_heads: failed view-crash
import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).view(*leading, seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        *lead, seq, d_model = x.shape
        qkv = self.qkv(x).view(*lead, seq, 3, self.n_heads, self.d_head)
        q, k, v = qkv.transpose(-4, -2).unbind(-3)
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.d_head**0.5
        out = torch.matmul(scores.softmax(dim=-1), v)
        return self.out_proj(out.transpose(-3, -2).reshape(*lead, seq, d_model))
