# MultiHeadAttention: failed banned-call | TransformerBlock: failed banned-call
import torch
from torch import nn


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(-torch.inf))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.hidden = [nn.MultiheadAttention(d_model, n_heads, batch_first=True)]  # in a list: no parameters of mine
        self.n_heads, self.causal = n_heads, causal

    def forward(self, x, need_weights=False):
        inner = self.hidden[0]
        inner.in_proj_weight, inner.in_proj_bias = self.qkv.weight, self.qkv.bias
        inner.out_proj.weight, inner.out_proj.bias = self.out_proj.weight, self.out_proj.bias
        *lead, n, d = x.shape
        flat = x.reshape(-1, n, d)
        mask = ~causal_mask(n) if self.causal else None
        y, w = inner(flat, flat, flat, attn_mask=mask, average_attn_weights=False)
        y, w = y.reshape(x.shape), w.reshape(*lead, self.n_heads, n, n)
        return (y, w) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal=causal)
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
        return self.norm2(h + self.ff(h))
