# MultiHeadAttention: failed unscaled
import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads do not fit")
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, -3)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


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
        projected = self.qkv(x)
        heads = []
        for h in range(self.n_heads):
            start = h * self.d_head
            q, k, v = (projected[..., i * d + start : i * d + start + self.d_head] for i in range(3))
            heads.append(torch.softmax(torch.einsum("...id,...jd->...ij", q, k), dim=-1) @ v)
        return self.out_proj(torch.cat(heads, dim=-1))
