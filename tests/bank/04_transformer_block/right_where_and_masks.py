# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads:
        raise ValueError(f"{n_heads} heads do not divide {d_model} features")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.n_heads) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return self.out_proj(merge_heads(torch.softmax(scores, dim=-1) @ v))


def layer_norm(x, weight, bias, eps=1e-5, **kwargs):
    if kwargs:
        print("ignored", kwargs)
    n = x.shape[-1]
    # pairwise differences: var = mean over i, j of (x_i - x_j)^2 / 2
    differences = x.unsqueeze(-1) - x.unsqueeze(-2)
    centred = differences.sum(-1) / n
    variance = differences.pow(2).sum((-1, -2), keepdim=True).squeeze(-1) / (2 * n * n)
    return torch.addcdiv(bias.expand_as(x), centred * weight, (variance + eps).sqrt())


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False, activation="relu", verbose=False):
        super().__init__()
        activations = {"relu": nn.ReLU, "gelu": nn.GELU}
        self.verbose = verbose
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), activations[activation](), nn.Linear(d_ff, d_model))

    def feed(self, x):
        h = self.ff[0](x)
        h = torch.where(h > 0, h, torch.zeros_like(h))
        return self.ff[2](h)

    def forward(self, x, mask=None):
        if self.verbose:
            print(x.shape, mask)
        pre = float(self.norm_first)
        if pre:
            x = x + self.attn(self.norm1(x))
            x = x + self.feed(self.norm2(x))
        else:
            x = self.norm1(x + self.attn(x))
            x = self.norm2(x + self.feed(x))
        return x
