# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import torch, torch.nn as nn

causal_mask = lambda seq_len: torch.ones(seq_len, seq_len, dtype=bool).tril_()
mask_scores = lambda scores, mask: scores.where(mask, scores.new_tensor(-torch.inf))


class MultiHeadAttention(nn.Module):
    def __init__(s, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads: raise ValueError()
        s.h, s.c, s.qkv, s.out_proj = n_heads, causal, nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(s, x, need_weights=False):
        q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).movedim(-3, 0).transpose(-3, -2)
        w = (lambda a: mask_scores(a, causal_mask(a.shape[-1])) if s.c else a)(q @ k.mT * k.shape[-1] ** -.5).softmax(-1)
        return (lambda o: (o, w) if need_weights else o)(s.out_proj((w @ v).transpose(-3, -2).flatten(-2)))


class TransformerBlock(nn.Module):
    def __init__(s, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        s.attn, s.norm1, s.norm2 = MultiHeadAttention(d_model, n_heads, causal), nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        s.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(s, x): return (lambda y: s.norm2(y + s.ff(y)))(s.norm1(x + s.attn(x)))
