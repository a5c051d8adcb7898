# merge_heads: failed interleaved | MultiHeadAttention: failed interleaved
import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads do not fit")
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, -3)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return torch.einsum("...hsd->...sdh", x).reshape(*leading, seq, d_head * n_heads)


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
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        return self.out_proj(merge_heads(torch.softmax(q @ k.mT / self.d_head**0.5, -1) @ v))
