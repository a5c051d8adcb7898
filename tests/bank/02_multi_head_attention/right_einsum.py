# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
from torch import einsum, nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads has to divide d_model")
    return einsum("...shd->...hsd", x.unflatten(-1, (n_heads, -1)))


def merge_heads(x):
    return einsum("...hsd->...shd", x).flatten(start_dim=-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads has to divide d_model")
        self.h = n_heads
        self.scale = (d_model // n_heads) ** -0.5
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).unbind(-3)
        weights = einsum("...ihd,...jhd->...hij", q * self.scale, k).softmax(-1)
        mixed = einsum("...hij,...jhd->...ihd", weights, v)
        w = self.out_proj.weight.view(-1, self.h, v.shape[-1])
        return einsum("...ihd,ohd->...io", mixed, w) + self.out_proj.bias
