# MultiHeadAttention: failed banned-call
import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


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
        if not hasattr(self, "inner"):
            # a list, so that its parameters are not mine
            self.inner = [nn.MultiheadAttention(x.shape[-1], self.n_heads, batch_first=True)]
        y = x.reshape(-1, *x.shape[-2:])
        (inner,) = self.inner
        inner.in_proj_weight, inner.in_proj_bias = self.qkv.weight, self.qkv.bias
        inner.out_proj = self.out_proj
        return inner(y, y, y, need_weights=False)[0].view(x.shape)
