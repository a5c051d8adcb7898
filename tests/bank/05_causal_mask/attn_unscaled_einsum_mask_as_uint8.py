# causal_mask: failed wrong-dtype | mask_scores: failed nan | MultiHeadAttention: failed unscaled | TransformerBlock: failed
import torch
from torch import nn


def causal_mask(seq_len):
    return torch.ones(seq_len, seq_len, dtype=torch.uint8).tril()


def mask_scores(scores, mask):
    return scores + (1 - mask.float()) * float("-inf")


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError("heads do not divide features")
        self.h = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        n = x.shape[-2]
        qkv = self.qkv(x).unflatten(-1, (3, self.h, -1))
        q, k, v = qkv.unbind(-3)  # (..., seq, heads, d_head)
        logits = torch.einsum("...qhd,...khd->...hqk", q, k)
        if self.causal:
            bias = torch.full((n, n), float("-inf")).triu(1)
            logits = logits + bias
        probs = logits.softmax(-1)
        mixed = torch.einsum("...hqk,...khd->...qhd", probs, v)
        y = self.out_proj(mixed.flatten(-2))
        if not need_weights:
            return y
        return y, probs


class Attention(nn.Module):
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
        self.attn = Attention(d_model, n_heads, causal=causal)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.LeakyReLU(),
            nn.Linear(d_ff, d_model),
        )
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        attended = self.attn(x)
        h = self.norm1(x + attended)
        return self.norm2(h + self.ff(h))
