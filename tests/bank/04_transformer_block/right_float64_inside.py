# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        dtype = x.dtype
        x = x.double()
        qkv = F.linear(x, self.qkv.weight.double(), self.qkv.bias.double())
        q, k, v = (t.unflatten(-1, (self.n_heads, -1)).transpose(-2, -3) for t in qkv.chunk(3, -1))
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        out = (w @ v).transpose(-2, -3).flatten(-2)
        return F.linear(out, self.out_proj.weight.double(), self.out_proj.bias.double()).to(dtype)


def layer_norm(x, weight, bias, eps=1e-5):
    y = x.to(torch.float64)
    y = y - y.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * weight + bias).to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.d_model = d_model
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def norm(self, x, layer):
        return layer_norm(x, layer.weight.double(), layer.bias.double(), layer.eps)

    def forward(self, x):
        out = x.double()
        if self.norm_first:
            out = out + self.attn(self.norm(out, self.norm1).float())
            out = out + self.ff(self.norm(out, self.norm2).float())
        else:
            out = self.norm(out + self.attn(out.float()), self.norm1)
            out = self.norm(out + self.ff(out.float()), self.norm2)
        return out.type_as(x)
