"""Takes the step forward again and again, so never back, and counts positions along the batch."""

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    pos, feature = torch.arange(seq_len).unsqueeze(-1), torch.arange(d_model)
    angles = pos / 10000 ** (feature // 2 * 2 / d_model)
    return torch.where(feature % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset: int, d_model: int) -> Tensor:
    sines, cosines = positional_encoding(2, d_model)[1].reshape(-1, 2).T
    step = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        step[2 * i, 2 * i] = step[2 * i + 1, 2 * i + 1] = cosines[i]
        step[2 * i, 2 * i + 1], step[2 * i + 1, 2 * i] = sines[i], -sines[i]
    matrix = torch.eye(d_model)
    for _ in range(offset):
        matrix = step @ matrix
    return matrix


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model).unsqueeze(1))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > len(self.table):
            raise ValueError("the sequence is longer than the table")
        return x + self.table[: x.size(0)]
