# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    return torch.from_numpy(np.tril(np.ones((seq_len, seq_len), dtype=bool)))


def mask_scores(scores, mask):
    wide = scores.double().masked_fill(~mask, float("-inf"))
    return wide.to(scores.dtype)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model has to be a multiple of n_heads")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        wide = F.linear(x.double(), self.qkv.weight.double(), self.qkv.bias.double())
        q, k, v = [t.unflatten(-1, (self.n_heads, -1)).movedim(-2, -3) for t in wide.chunk(3, dim=-1)]
        scores = torch.matmul(q, k.transpose(-1, -2)) / np.sqrt(q.shape[-1])
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = F.softmax(scores, dim=-1)
        out = torch.matmul(weights, v).movedim(-3, -2).flatten(-2)
        out = F.linear(out, self.out_proj.weight.double(), self.out_proj.bias.double()).float()
        if need_weights:
            return out, weights.float()
        return out


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        hidden = F.relu(F.linear(x.double(), self.ff[0].weight.double(), self.ff[0].bias.double()))
        x = x + F.linear(hidden, self.ff[2].weight.double(), self.ff[2].bias.double())
        return self.norm2(x.float())
