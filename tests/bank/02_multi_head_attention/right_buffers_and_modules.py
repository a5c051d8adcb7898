# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.n_heads = n_heads

    def forward(self, x):
        if x.shape[-1] % self.n_heads:
            raise ValueError("d_model % n_heads")
        return nn.Unflatten(-1, (self.n_heads, x.shape[-1] // self.n_heads))(x).transpose(-3, -2)


class Merge(nn.Module):
    def forward(self, x):
        return nn.Flatten(-2)(x.transpose(-3, -2))


def split_heads(x, n_heads):
    return Split(n_heads)(x)


def merge_heads(x):
    return Merge()(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads")
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.split = Split(n_heads)
        self.merge = Merge()
        self.norm = nn.Softmax(dim=-1)
        self.drop = nn.Dropout(0.0)
        self.register_buffer("scale", torch.tensor(float(d_model // n_heads)).rsqrt(), persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1  # I count how often it is used
        q, k, v = map(self.split, torch.tensor_split(self.qkv(x), 3, -1))
        weights = self.drop(self.norm(self.scale * (q @ k.mT)))
        self.last_weights = weights.detach()
        return self.out_proj(self.merge(weights @ v))
