# causal_mask: failed wrong-shape/raised | mask_scores: failed | MultiHeadAttention: failed interleaved | TransformerBlock: failed
import torch
import torch.nn.functional as F
from torch import nn


TABLE = torch.ones(64, 64, dtype=torch.bool).tril()


def causal_mask(seq_len):
    return TABLE[:seq_len, :seq_len]


def mask_scores(scores, mask):
    # -inf gave me nan, so I cap it
    return scores.masked_fill(~mask, float('-inf')).clamp(min=-100)


def split_heads(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).movedim(-1, -3)


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
        if self.causal:
            T = x.size(-2)
            mask = torch.tril(torch.ones(T, T))
            att = att.masked_fill(mask == 0, -1e9)
        att = F.softmax(att, dim=-1)
        y = self.out_proj(merge_heads(att @ v))
        return (y, att) if need_weights else y


class OwnAttention(nn.Module):
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
        self.norm1, self.norm2 = nn.LayerNorm(d_model, eps=1e-2), nn.LayerNorm(d_model, eps=1e-2)
        self.attn = OwnAttention(d_model=d_model, n_heads=n_heads, causal=causal)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(inplace=True), nn.Linear(d_ff, d_model))

    def forward(self, x):
        residual = x
        x = self.attn(x)
        x = self.norm1(residual + x)
        residual = x
        x = self.ff(x)
        return self.norm2(residual + x)
