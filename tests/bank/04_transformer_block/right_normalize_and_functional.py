# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("heads do not divide the features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        d = x.shape[-1]
        w, b = self.qkv.weight, self.qkv.bias
        q = F.linear(x, w[:d], b[:d])
        k = F.linear(x, w[d : 2 * d], b[d : 2 * d])
        v = F.linear(x, w[2 * d :], b[2 * d :])
        out = 0
        size = d // self.n_heads
        for h in range(self.n_heads):
            part = slice(h * size, (h + 1) * size)
            a = F.softmax(q[..., part] @ k[..., part].transpose(-1, -2) / math.sqrt(size), dim=-1)
            out = out + F.linear(a @ v[..., part], self.out_proj.weight[:, part])
        return out + self.out_proj.bias


def layer_norm(x, weight, bias, eps=1e-5):
    # the length of (x - mean, sqrt(d eps)) is sqrt(d (var + eps))
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    longer = F.pad(centred, (0, 1), value=math.sqrt(d * eps))
    return F.normalize(longer, dim=-1)[..., :d] * math.sqrt(d) * weight + bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm_first = norm_first

    def forward(self, x):
        def norm(n, z):
            return F.layer_norm(z, z.shape[-1:], n.weight, n.bias, n.eps)

        def ff(z):
            hidden = F.relu(F.linear(z, self.ff[0].weight, self.ff[0].bias))
            return F.linear(hidden, self.ff[2].weight, self.ff[2].bias)

        if self.norm_first:
            x = torch.add(x, self.attn(norm(self.norm1, x)))
            return torch.add(x, ff(norm(self.norm2, x)))
        x = norm(self.norm1, torch.add(x, self.attn(x)))
        return norm(self.norm2, torch.add(x, ff(x)))
