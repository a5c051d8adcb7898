# split_heads: failed wrong-type | MultiHeadAttention: failed unscaled
import torch
from torch import nn


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads")
    return x.chunk(n_heads, dim=-1)


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
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, self.d_head)).movedim(-2, -4).unbind(-2)
        return self.out_proj((torch.softmax(q @ k.mT, -1) @ v).transpose(-3, -2).flatten(-2))
