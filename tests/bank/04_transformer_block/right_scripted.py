# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

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


@torch.jit.script
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + eps) * weight + bias


class TransformerBlock(nn.Module):
    __constants__ = ["norm_first"]
    norm_first: bool

    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm((d_model,))
        self.norm2 = nn.LayerNorm([d_model], eps=1e-05)
        self.ff = nn.Sequential()
        self.ff.append(nn.Linear(in_features=d_model, out_features=d_ff))
        self.ff.append(nn.ReLU())
        self.ff.append(nn.Linear(in_features=d_ff, out_features=d_model))
        self.norm_first = norm_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.norm_first:
            case True:
                after_attention = x + self.attn(self.norm1(x))
                return after_attention + self.ff(self.norm2(after_attention))
            case _:
                after_attention = self.norm1(x + self.attn(x))
                return self.norm2(after_attention + self.ff(after_attention))
