# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
from torch import nn


class Affine(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) / math.sqrt(n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.weight.T + self.bias


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        var, mean = torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(var + 1e-5) * self.weight + self.bias


class Relu(nn.Module):
    def forward(self, x):
        return x * (x > 0)


def mask_scores(scores, mask):
    return scores.masked_fill(mask.eq(False), -math.inf)


causal_mask = lambda seq_len: torch.tensor([[column <= row for column in range(seq_len)] for row in range(seq_len)])


class AttentionBase(nn.Module):
    def __init__(self, d_model, n_heads):
        if d_model % n_heads:
            raise ValueError("heads")
        super().__init__()
        self.n_heads = n_heads
        self.qkv = Affine(d_model, 3 * d_model)
        self.out_proj = Affine(d_model, d_model)

    def heads(self, x):
        return [t.unflatten(-1, (self.n_heads, -1)).swapaxes(-2, -3) for t in self.qkv(x).tensor_split(3, -1)]

    def hide(self, scores):
        return scores

    def forward(self, x, need_weights=False):
        q, k, v = self.heads(x)
        weights = self.hide(q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        output = self.out_proj((weights @ v).swapaxes(-2, -3).flatten(start_dim=-2))
        return (output, weights) if need_weights else output


class MultiHeadAttention(AttentionBase):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__(d_model, n_heads)
        self.causal = causal

    def hide(self, scores):
        return mask_scores(scores, causal_mask(scores.shape[-1])) if self.causal else super().hide(scores)


class Residual(nn.Module):
    def add(self, norm, layer, x):
        return norm(x + layer(x))


class TransformerBlock(Residual):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = Norm(d_model)
        self.norm2 = Norm(d_model)
        self.ff = nn.Sequential(Affine(d_model, d_ff), Relu(), Affine(d_ff, d_model))

    def forward(self, x):
        return self.add(self.norm2, self.ff, self.add(self.norm1, self.attn, x))
