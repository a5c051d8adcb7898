"""Right in another way: E[x²] in float64, one list of halves, loops over the batch."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from solutions.multi_head_attention import MultiHeadAttention


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    if x.dim() > 1:
        return torch.stack([layer_norm(row, weight, bias, eps) for row in x])
    row = x.double()
    mean = row.sum() / len(row)
    variance = row.dot(row) / len(row) - mean**2
    return ((row - mean) * torch.rsqrt(variance + eps)).to(x.dtype).mul(weight).add(bias)


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        layers = [nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)]
        self.ff = nn.Sequential(OrderedDict((str(i), layer) for i, layer in enumerate(layers)))
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.join = self.pre if norm_first else self.post

    def pre(self, x: Tensor, part: nn.Module, norm: nn.Module) -> Tensor:
        return x.add(part(norm(x)))

    def post(self, x: Tensor, part: nn.Module, norm: nn.Module) -> Tensor:
        return norm(part(x).add(x))

    def forward(self, x: Tensor) -> Tensor:
        for part, norm in ((self.attn, self.norm1), (self.ff, self.norm2)):
            x = self.join(x, part, norm)
        return x
