# MultiHeadAttention: failed wrong-parameters
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("heads do not fit")
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, -3)


def merge_heads(x):
    x = x.transpose(-2, -3).contiguous()
    return x.view(*x.shape[:-2], -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x):
        q = split_heads(self.w_q(x), self.n_heads)
        k = split_heads(self.w_k(x), self.n_heads)
        v = split_heads(self.w_v(x), self.n_heads)
        w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.w_o(merge_heads(w @ v))
