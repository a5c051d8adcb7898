# causal_mask: failed wrong-shape | mask_scores: failed wrong-shape/nan | MultiHeadAttention: failed qkv-order | TransformerBlock: failed
import torch
from torch import nn


def causal_mask(seq_len):
    i = torch.arange(seq_len)
    return (i[None, :, None] >= i[None, None, :]).squeeze()


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).squeeze()


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
        q, v, k = torch.split(self.qkv(x), d_model, dim=-1)
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
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model=d_model, n_heads=n_heads, causal=causal)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(inplace=True), nn.Linear(d_ff, d_model))

    def forward(self, x):
        residual = x
        x = self.attn(x)
        x = self.norm1(residual + x)
        residual = x
        x = self.ff(x)
        return self.norm2(residual + x)
