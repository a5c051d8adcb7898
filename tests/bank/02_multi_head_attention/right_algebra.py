# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import nn


# split and merge as products with matrices of zeros and ones


def selectors(d_model, n_heads):
    """(n_heads, d_model, d_head): selectors[h] picks the features of head h."""
    d_head = d_model // n_heads
    return torch.eye(d_model).reshape(d_model, n_heads, d_head).permute(1, 0, 2)


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads != 0:
        raise ValueError(f"{n_heads} does not divide {x.shape[-1]}")
    return x[..., None, :, :] @ selectors(x.shape[-1], n_heads)


def merge_heads(x):
    n_heads, _, d_head = x.shape[-3:]
    return (x @ selectors(n_heads * d_head, n_heads).mT).sum(dim=-3)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{n_heads} does not divide {d_model}")
        self.d_model, self.n_heads = d_model, n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        # the row sums of the weights are 1, so the bias of the values can be added at the end,
        # and softmax does not see what is the same for every key, so the bias of the keys can go
        d = self.d_model
        w_q, w_k, w_v = self.qkv.weight.split(d)
        b_q, b_k, b_v = self.qkv.bias.split(d)
        pick = selectors(d, self.n_heads)
        q = (x @ w_q.T + b_q)[..., None, :, :] @ pick
        k = (x @ w_k.T + 0 * b_k)[..., None, :, :] @ pick
        k = k - k.mean(dim=-2, keepdim=True)
        w = torch.softmax(q @ k.mT / math.sqrt(pick.shape[-1]), dim=-1)
        mixed = w @ (x[..., None, :, :] @ (w_v.T @ pick))
        folded = self.out_proj.weight @ b_v + self.out_proj.bias
        return (mixed @ pick.mT).sum(-3) @ self.out_proj.weight.T + folded
