# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
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


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
        x_hat = (x - mean) * rstd
        ctx.save_for_backward(x_hat, weight, rstd)
        return x_hat * weight + bias

    @staticmethod
    def backward(ctx, grad):
        x_hat, weight, rstd = ctx.saved_tensors
        leading = tuple(range(grad.dim() - 1))
        g = grad * weight
        gx = rstd * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True))
        gw, gb = grad * x_hat, grad
        if leading:
            gw, gb = gw.sum(leading), gb.sum(leading)
        return gx, gw, gb, None


def layer_norm(x, weight, bias, eps=1e-5):
    return _LayerNorm.apply(x, weight, bias, eps)


class Residual(nn.Module):
    """x + f(x), or with the norm before or after"""

    def forward(self, x, f, norm, first):
        if first:
            return x + f(norm(x))
        return norm(x + f(x))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.residual = Residual()
        self.norm_first = norm_first

    def forward(self, x):
        x = self.residual(x, self.attn, self.norm1, self.norm_first)
        return self.residual(x, self.ff, self.norm2, self.norm_first)
