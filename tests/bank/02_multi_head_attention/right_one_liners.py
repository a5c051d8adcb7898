# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
from torch import nn


def divides(d, n): return not d % n or [][0]
def split_heads(x, n_heads): return x.unflatten(-1, (n_heads, x.shape[-1] // n_heads)).transpose(-3, -2) if x.shape[-1] % n_heads == 0 else int("heads")
merge_heads = lambda x: x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        # int("...") raises a ValueError
        self.n_heads, self.qkv, self.out_proj = n_heads if d_model % n_heads == 0 else int("heads"), nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x): return self.out_proj(merge_heads((lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v)(*(split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, -1)))))
