"""Halves each exponent of the shift, and cuts off in silence what is longer than the table."""

import math

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    wide = torch.zeros(seq_len, d_model + 1)
    pos = torch.arange(seq_len).unsqueeze(-1)
    angles = pos / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    hands = angles.shape[1]
    wide[:, 0 : 2 * hands : 2] = angles.sin()
    wide[:, 1 : 2 * hands : 2] = angles.cos()
    return wide[:, :d_model]


def shift_matrix(offset: int, d_model: int) -> Tensor:
    matrix = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        angle = offset / 10000 ** (i / d_model)
        sine, cosine = 2 * i, 2 * i + 1
        matrix[sine, sine] = matrix[cosine, cosine] = math.cos(angle)
        matrix[sine, cosine], matrix[cosine, sine] = math.sin(angle), -math.sin(angle)
    return matrix


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        seq = min(x.shape[-2], self.table.shape[0])
        return x[..., :seq, :] + self.table[:seq]
