# MultiHeadAttention: failed transposed | TransformerBlock: failed
import math

import torch
from torch import nn


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len).tril().bool()


def mask_scores(scores, mask):
    blocked = torch.logical_not(mask)
    return torch.masked_fill(scores, blocked, -float("inf"))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be divisible by n_heads")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        *lead, seq, d_model = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        k = k.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        v = v.reshape(*lead, seq, self.n_heads, self.d_head).transpose(-3, -2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if self.causal:
            scores = mask_scores(scores, causal_mask(seq).transpose(0, 1))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(-3, -2).reshape(*lead, seq, d_model)
        out = self.out_proj(out)
        if need_weights:
            return out, weights
        return out


class OwnAttention(nn.Module):
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
        self.attn = OwnAttention(d_model, n_heads, causal=causal)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        attended = self.attn(x)
        h = self.norm1(x + attended)
        return self.norm2(self.ff(h))
