# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import einsum, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.h = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (3, self.h, -1))
        q, k, v = qkv.unbind(-3)
        a = einsum("...qhd,...khd->...hqk", q, k).div(math.sqrt(q.size(-1))).softmax(-1)
        return self.out_proj(einsum("...hqk,...khd->...qhd", a, v).flatten(-2))


def layer_norm(x, weight, bias, eps=1e-5):
    d = x.shape[-1]
    mean = einsum("...d->...", x) / d
    c = x - mean[..., None]
    var = einsum("...d,...d->...", c, c) / d
    return einsum("...d,...,d->...d", c, (var + eps).rsqrt(), weight) + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.pre = norm_first

    def feed_forward(self, x):
        up, _, down = self.ff
        hidden = einsum("...d,fd->...f", x, up.weight) + up.bias
        return einsum("...f,df->...d", hidden.clamp(min=0), down.weight) + down.bias

    def forward(self, x):
        for norm, f in ((self.norm1, self.attn), (self.norm2, self.feed_forward)):
            x = x + f(norm(x)) if self.pre else norm(x + f(x))
        return x
