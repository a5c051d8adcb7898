# split_heads: failed no-gradient | merge_heads: failed no-gradient | MultiHeadAttention: failed no-gradient
import numpy as np
import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")
    a = x.detach().numpy().reshape(*leading, seq, n_heads, d_model // n_heads)
    return torch.from_numpy(np.swapaxes(a, -3, -2).copy())


def merge_heads(x):
    a = np.swapaxes(x.detach().cpu().numpy(), -3, -2)
    return torch.tensor(a.reshape(*a.shape[:-2], -1))


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
        x = torch.from_numpy(x.detach().numpy().copy())
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for t in self.qkv(x).chunk(3, -1))
        s = (q @ k.mT).detach().numpy() / np.float32(np.sqrt(self.d_head))
        e = np.exp(s - s.max(-1, keepdims=True))
        w = torch.from_numpy(e / e.sum(-1, keepdims=True))
        return self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
