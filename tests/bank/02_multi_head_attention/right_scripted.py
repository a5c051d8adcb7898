# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math

import torch
from torch import Tensor, nn


@torch.jit.script
def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), -1) @ v


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    if x.size(-1) % n_heads:
        raise ValueError("x.size(-1) % n_heads")
    size = x.size()[:-1] + (n_heads, x.size(-1) // n_heads)
    return torch.ops.aten.transpose.int(torch.ops.aten.reshape.default(x, size), -3, -2)


def merge_heads(x: Tensor) -> Tensor:
    moved = torch.ops.aten.transpose.int(x, -3, -2)
    return torch.ops.aten.reshape.default(moved, moved.size()[:-2] + (-1,))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model % n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask=None) -> Tensor:
        parts = torch.ops.aten.split.Tensor(self.qkv(x), x.size(-1), -1)
        heads = [split_heads(part, self.n_heads) for part in parts]
        return self.dropout(self.out_proj(merge_heads(attend(*heads))))
