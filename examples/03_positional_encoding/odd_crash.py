"""Has no odd width in mind at first, and lets training change the table."""

import math

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    table = torch.zeros(seq_len, d_model)
    pos = torch.arange(seq_len).float().unsqueeze(1)
    speeds = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(pos * speeds)
    table[:, 1::2] = torch.cos(pos * speeds)
    return table


def shift_matrix(offset: int, d_model: int) -> Tensor:
    angles = offset / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    blocks = [torch.tensor([[b.cos(), b.sin()], [-b.sin(), b.cos()]]) for b in angles]
    return torch.block_diag(*blocks)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.table = nn.Parameter(positional_encoding(max_len, d_model + d_model % 2))

    def forward(self, x: Tensor) -> Tensor:
        seq, d_model = x.shape[-2:]
        if seq > len(self.table):
            raise ValueError("the sequence is longer than the table")
        return x + self.table[:seq, :d_model]
