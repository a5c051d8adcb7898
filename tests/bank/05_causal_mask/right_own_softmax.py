# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import torch
from torch import nn


class Hide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        ctx.save_for_backward(mask)
        out = scores.clone()
        out.masked_fill_(~mask, float("-inf"))
        return out

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad.masked_fill(~mask, 0), None


def softmax(s):
    # every row has at least its own diagonal
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def causal_mask(seq_len):
    return torch.tensor([[True] * (i + 1) + [False] * (seq_len - i - 1) for i in range(seq_len)])


def mask_scores(scores, mask):
    return Hide.apply(scores, mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def attend(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            scores = mask_scores(scores, causal_mask(q.shape[-2]))
        weights = softmax(scores)
        return weights @ v, weights

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, -1)
        pairs = [self.attend(*qkv) for qkv in zip(*(t.chunk(self.n_heads, -1) for t in (q, k, v)))]
        outs, maps = zip(*pairs)
        output = self.out_proj(torch.cat(outs, -1))
        return (output, torch.stack(maps, -3)) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = x + self.attn(x)
        x = self.norm1(x)
        x = x + self.ff(x)
        x = self.norm2(x)
        return x
