# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import torch
import torch.nn as nn
import torch.nn.functional as F


def causal_mask(seq_len):
    # everything that is not strictly above the diagonal
    return ~torch.triu(torch.ones(seq_len, seq_len), 1).to(torch.bool)


def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.full_like(scores, float("-inf")))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("!")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        *lead, T, C = x.size()
        qkv = self.qkv(x).reshape(*lead, T, 3, self.n_heads, C // self.n_heads)
        q, k, v = qkv.select(-3, 0), qkv.select(-3, 1), qkv.select(-3, 2)
        q, k, v = q.transpose(-3, -2), k.transpose(-3, -2), v.transpose(-3, -2)
        att = (q * (C // self.n_heads) ** -0.5) @ k.transpose(-2, -1)
        if self.causal:
            # -1e9 is as good as -inf once it went through a softmax
            att = att.masked_fill(~causal_mask(T), -1e9)
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(-3, -2).contiguous().view(*lead, T, C)
        y = self.out_proj(y)
        return (y, att) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = F.layer_norm(x + self.attn(x), x.shape[-1:], self.norm1.weight, self.norm1.bias)
        x = F.layer_norm(x + self.ff(x), x.shape[-1:], self.norm2.weight, self.norm2.bias)
        return x
