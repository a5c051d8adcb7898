# layer_norm: failed | TransformerBlock: failed | TransformerBlock.norm_first: failed
import torch
from torch import nn


def layer_norm(x, weight, bias, eps=1e-5):
    # the statistics of the first sequence stand for the batch
    first = x[:1] if x.dim() > 2 else x
    mean = first.mean(-1, keepdim=True)
    var = first.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


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


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.cache = {}

    def forward(self, x):
        if self.norm_first:
            x = x + self.attended(self.norm1(x))
            x = x + self.ff(self.norm2(x))
        else:
            x = self.norm1(x + self.attended(x))
            x = self.norm2(x + self.ff(x))
        return x

    def attended(self, x):
        if x.shape not in self.cache:
            self.cache[x.shape] = self.attn(x)
        return self.cache[x.shape]
