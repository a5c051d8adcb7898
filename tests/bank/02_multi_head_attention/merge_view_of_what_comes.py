# merge_heads: failed no-transpose/view-crash
import torch
from torch import nn


def split_heads(x, n_heads):
    if x.size(-1) % n_heads != 0:
        raise ValueError("d_model must be divisible by n_heads")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-3)


def merge_heads(x):
    n_heads, seq, d_head = x.shape[-3:]
    return x.view(*x.shape[:-3], seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be divisible by n_heads")
        self.n_heads = n_heads
        self.scale = (d_model // n_heads) ** -0.5
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).unbind(-3)
        w = torch.einsum("...ihd,...jhd->...hij", q, k).mul(self.scale).softmax(-1)
        out = torch.einsum("...hij,...jhd->...ihd", w, v)
        return self.out_proj(out.flatten(-2))
