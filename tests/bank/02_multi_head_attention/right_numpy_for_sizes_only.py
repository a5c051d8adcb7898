# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import numpy as np
import torch
from torch import nn


def split_heads(x, n_heads):
    if np.mod(x.shape[-1], n_heads) != 0:
        raise ValueError("wrong sizes")
    order = np.arange(x.shape[-1]).reshape(n_heads, -1)
    picked = x[..., torch.from_numpy(order)]  # (..., seq, n_heads, d_head)
    return picked.transpose(-2, -3)


def merge_heads(x):
    shape = np.array(x.shape)
    new = tuple(shape[:-3].tolist()) + (int(shape[-2]), int(shape[-3] * shape[-1]))
    return torch.swapaxes(x, -2, -3).reshape(new)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if np.mod(d_model, n_heads) != 0:
            raise ValueError("wrong sizes")
        self.n_heads = n_heads
        self.scale = float(np.sqrt(d_model // n_heads))
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = np.array_split(range(3 * x.shape[-1]), 3)
        y = self.qkv(x)
        q, k, v = (split_heads(y[..., torch.as_tensor(i)], self.n_heads) for i in (q, k, v))
        # scaling both sides by the fourth root
        w = torch.softmax((q / self.scale**0.5) @ (k / self.scale**0.5).transpose(-1, -2), dim=-1)
        return self.out_proj(merge_heads(w @ v))
