# split_heads: failed no-transpose | MultiHeadAttention: failed no-transpose
import torch
from torch import nn


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.flatten(-2).unflatten(-1, (n_heads, seq, -1))

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
        q, k, v = self.qkv(x).chunk(3, -1)
        shape = x.shape[:-2] + (self.n_heads, x.shape[-2], self.d_head)
        q, k, v = q.reshape(shape), k.reshape(shape), v.reshape(shape)
        out = torch.softmax(q @ k.mT / self.d_head**0.5, dim=-1) @ v
        return self.out_proj(out.transpose(-3, -2).flatten(-2))
