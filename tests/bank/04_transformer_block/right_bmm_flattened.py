# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} features do not split into {n_heads} heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-2], shape[-1])
        b, t, d = x.shape
        h = self.n_heads
        qkv = self.qkv(x).view(b, t, 3, h, d // h).permute(2, 0, 3, 1, 4).reshape(3, b * h, t, d // h)
        q, k, v = qkv[0], qkv[1], qkv[2]
        w = torch.bmm(q, k.transpose(1, 2)).div_(math.sqrt(d // h)).softmax(2)
        y = torch.bmm(w, v).view(b, h, t, d // h).permute(0, 2, 1, 3).contiguous().view(b, t, d)
        return self.out_proj(y).view(shape)


def layer_norm(x, weight, bias, eps=1e-5):
    shape = x.shape
    rows = x.reshape(-1, shape[-1])                       # (N, d)
    mean = rows.mean(1)                                   # (N,)
    std = (rows.var(1, correction=0) + eps).sqrt()        # (N,)
    rows = (rows - mean[:, None]) / std[:, None]
    return torch.addcmul(bias, rows, weight).reshape(shape)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm2 = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def forward(self, x):
        shape = x.shape
        h = x.reshape(-1, *shape[-2:])
        l1, l2 = self.ff[0], self.ff[2]

        def mlp(z):
            flat = z.reshape(-1, shape[-1])
            hidden = torch.addmm(l1.bias, flat, l1.weight.t()).relu_()
            return torch.addmm(l2.bias, hidden, l2.weight.t()).view_as(z)

        if self.norm_first:
            h = self.attn(self.norm1(h)) + h
            h = mlp(self.norm2(h)) + h
        else:
            h = self.norm1(self.attn(h) + h)
            h = self.norm2(mlp(h) + h)
        return h.reshape(shape)
