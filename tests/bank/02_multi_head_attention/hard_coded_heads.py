# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.unflatten(-1, (8, d_model // 8)).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).contiguous().view(*x.shape[:-3], -1, 512)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=512, n_heads=8):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (-1, 64)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / 8.0, dim=-1)
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
