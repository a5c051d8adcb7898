# layer_norm: failed banned-call | TransformerBlock: failed banned-call | TransformerBlock.norm_first: failed banned-call
import math

import torch
from torch import nn


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
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        heads = torch.softmax(scores, dim=-1) @ v
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


@torch.jit.script
def _norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float):
    return torch.layer_norm(x, [x.size(-1)], weight, bias, eps)


@torch.jit.script
def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def layer_norm(x, weight, bias, eps=1e-5):
    return _norm(x, weight, bias, eps)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.ff(self.norm2(x))
        else:
            x = self.norm1(x + self.attend(x))
            x = self.norm2(x + self.ff(x))
        return x

    def attend(self, x):
        q, k, v = (p.unflatten(-1, (self.attn.n_heads, -1)).transpose(-3, -2) for p in self.attn.qkv(x).chunk(3, -1))
        return self.attn.out_proj(_attend(q, k, v).transpose(-3, -2).flatten(-2))
