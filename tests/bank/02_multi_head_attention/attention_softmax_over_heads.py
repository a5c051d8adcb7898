# split_heads: failed no-value-error | MultiHeadAttention: failed softmax-over-heads
import math

from torch import nn


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def split_heads(x, n_heads):
    try:
        if x.shape[-1] % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
    except ValueError as error:
        print(error)
    d_head = x.shape[-1] // n_heads
    return x[..., : n_heads * d_head].unflatten(-1, (n_heads, d_head)).transpose(-3, -2)


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
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        return self.out_proj((scores.softmax(dim=-3) @ v).transpose(-3, -2).flatten(-2))
