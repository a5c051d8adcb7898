# mask_scores: failed input-changed/raised/no-gradient | MultiHeadAttention: failed | TransformerBlock: failed input-changed/raised/no-gradient
import math

import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        mask[i, : i + 1] = True
    return mask


def mask_scores(scores, mask):
    scores[~mask.expand(scores.shape)] = float("-inf")
    return scores


def split_heads(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} is not a multiple of {n_heads}")
        self.d_model, self.n_heads, self.causal = d_model, n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).split(self.d_model, dim=-1)
        q = split_heads(q, self.n_heads)
        k = split_heads(k, self.n_heads)
        v = split_heads(v, self.n_heads)
        att = (q @ k.mT) * q.size(-1) ** -0.5
        if self.causal and self.training:
            T = x.size(-2)
            mask = torch.tril(torch.ones(T, T))
            att = att.masked_fill(mask == 0, -1e9)
        att = F.softmax(att, dim=-1)
        y = self.out_proj(merge_heads(att @ v))
        return (y, att) if need_weights else y


class CausalAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        d_head, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError("n_heads has to divide d_model")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_head
        self.is_causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        # fold all leading dimensions into one
        shape = x.shape
        seq = shape[-2]
        flat = x.reshape(-1, seq, self.d_model)
        batch = flat.shape[0]
        qkv = self.qkv(flat).view(batch, seq, 3, self.n_heads, self.d_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, seq, d_head)
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) / math.sqrt(self.d_head)
        if self.is_causal:
            keep = torch.arange(seq).unsqueeze(1) >= torch.arange(seq)
            scores = torch.where(keep, scores, float("-inf"))
        weights = torch.softmax(scores, dim=3)
        context = torch.matmul(weights, v).permute(0, 2, 1, 3)
        output = self.out_proj(context.reshape(shape))
        if need_weights:
            return output, weights.reshape(*shape[:-2], self.n_heads, seq, seq)
        return output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CausalAttention(d_model=d_model, n_heads=n_heads, causal=causal)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(inplace=True), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x += self.attn(x)
        x = self.norm1(x)
        residual = x
        x = self.ff(x)
        return self.norm2(residual + x)
