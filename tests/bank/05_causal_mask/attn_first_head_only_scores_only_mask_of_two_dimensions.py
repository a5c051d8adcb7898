# mask_scores: failed | MultiHeadAttention: failed | TransformerBlock: failed no-batch
import torch
from torch import nn


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len).tril().bool()


def mask_scores(scores, mask):
    scores = scores.clone()
    scores[..., ~mask] = float("-inf")
    return scores


class MultiHeadAttention(nn.Module):
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
            if self.causal and h == 0:
                s = s.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))
            w = torch.softmax(s, dim=-1)
            maps.append(w)
            outs.append(w @ v[..., part])
        y = self.out_proj(torch.cat(outs, dim=-1))
        if need_weights:
            return y, torch.stack(maps, dim=-3)
        return y


class SelfAttention(nn.Module):
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
        self.attn = SelfAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        batch, seq, d_model = x.shape
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x
