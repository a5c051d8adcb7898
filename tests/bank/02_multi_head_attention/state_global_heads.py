# split_heads: failed | merge_heads: failed | MultiHeadAttention: failed
import math

import torch
from torch import nn


N_HEADS = 1
last = []


def split_heads(x, n_heads):
    global N_HEADS
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads must divide d_model")
    out = x.unflatten(-1, (N_HEADS if x.shape[-1] % N_HEADS == 0 else n_heads, -1)).transpose(-3, -2)
    N_HEADS = n_heads
    return out


def merge_heads(x):
    last.append(x)
    return last[max(0, len(last) - 2)].transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        global H
        H = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        global H
        q, k, v = (t.unflatten(-1, (H, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        H = 1
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
