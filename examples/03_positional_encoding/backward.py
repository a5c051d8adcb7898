"""Turns the way of the geometry book, and keeps the table where `.to()` does not find it."""

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    pos = torch.arange(seq_len).unsqueeze(-1)
    angles = pos / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


def shift_matrix(offset: int, d_model: int) -> Tensor:
    angles = offset / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    blocks = [torch.tensor([[b.cos(), -b.sin()], [b.sin(), b.cos()]]) for b in angles]
    return torch.block_diag(*blocks)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.table = positional_encoding(max_len, d_model)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > len(self.table):
            raise ValueError("the sequence is longer than the table")
        return x + self.table[: x.shape[-2]]
