# split_heads: failed | MultiHeadAttention: failed
import torch
from torch import nn


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


def split_heads(x, n_heads):
    return x.reshape(*x.shape[:-2], n_heads, x.shape[-2], -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.out_proj(torch.softmax(q @ k.mT, dim=-1) @ v)
