# merge_heads: failed wrong-shape | MultiHeadAttention: failed qkv-order
import torch.nn.functional as F
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, n_heads * d_head, seq)


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
        d = x.shape[-1]
        qkv = self.qkv(x)
        v, k, q = qkv[..., :d], qkv[..., d : 2 * d], qkv[..., 2 * d :]
        q, k, v = (split_heads(t, self.n_heads) for t in (q, k, v))
        return self.out_proj((F.softmax(q @ k.mT / self.d_head**0.5, -1) @ v).transpose(-3, -2).flatten(-2))
