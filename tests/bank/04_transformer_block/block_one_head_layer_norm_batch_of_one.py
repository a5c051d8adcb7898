# layer_norm: failed no-batch/raised/wrong-shape | TransformerBlock: failed | TransformerBlock.norm_first: failed
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        *leading, seq, d_model = x.shape
        qkv = self.qkv(x).reshape(*leading, seq, 3, self.n_heads, self.d_head)
        q, k, v = qkv.movedim(-3, 0).transpose(-3, -2)
        weights = torch.softmax(q @ k.mT * self.d_head**-0.5, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(*leading, seq, d_model)
        return self.out_proj(out)


def layer_norm(x, weight, bias, eps=1e-5):
    x = x.squeeze(0)
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, unbiased=False)
    return ((x - mean) / torch.sqrt(var + eps) * weight + bias).unsqueeze(0)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, 1)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attn(self.norm1(x))
            x = x + self.ff(self.norm2(x))
        else:
            x = self.norm1(x + self.attn(x))
            x = self.norm2(x + self.ff(x))
        return x
