"""Takes the number of a feature for 2i, so each feature has a speed of its own."""

import math

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    table = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for j in range(d_model):
            angle = pos / 10000 ** (j / d_model)
            table[pos, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return table


def shift_matrix(offset: int, d_model: int) -> Tensor:
    matrix = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        angle = offset / 10000 ** (2 * i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    return matrix


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > len(self.table):
            raise ValueError("the sequence is longer than the table")
        return x + self.table[: x.shape[-2]]
