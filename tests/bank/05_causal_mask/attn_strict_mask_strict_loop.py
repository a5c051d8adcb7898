# causal_mask: failed strict | mask_scores: failed large-negative | MultiHeadAttention: failed strict/nan | TransformerBlock: failed norm-order
import math

import torch
from torch import nn


def causal_mask(seq_len):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool)
    for i in range(seq_len):
        for j in range(i):
            mask[i, j] = True
    return mask


def mask_scores(scores, mask):
    # big enough to be 0 after the softmax
    return scores.masked_fill(~mask, -1e9)


class MultiHeadAttention(nn.Module):
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
            keep = torch.arange(seq).unsqueeze(1) > torch.arange(seq)
            scores = torch.where(keep, scores, float("-inf"))
        weights = torch.softmax(scores, dim=3)
        context = torch.matmul(weights, v).permute(0, 2, 1, 3)
        output = self.out_proj(context.reshape(shape))
        if need_weights:
            return output, weights.reshape(*shape[:-2], self.n_heads, seq, seq)
        return output


class Attn(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("bad number of heads")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq, d_model = x.shape[-2:]
        d_head = d_model // self.n_heads
        q, k, v = torch.split(self.qkv(x), d_model, dim=-1)
        outs, maps = [], []
        for h in range(self.n_heads):
            part = slice(h * d_head, (h + 1) * d_head)
            s = q[..., part] @ k[..., part].transpose(-1, -2) / d_head**0.5
            if self.causal:
                s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))
            w = torch.softmax(s, dim=-1)
            maps.append(w)
            outs.append(w @ v[..., part])
        y = self.out_proj(torch.cat(outs, dim=-1))
        if need_weights:
            return y, torch.stack(maps, dim=-3)
        return y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = Attn(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        x = x + self.ff(self.norm2(x))
        return x
