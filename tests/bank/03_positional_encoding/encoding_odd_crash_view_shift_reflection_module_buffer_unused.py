# positional_encoding: failed odd-crash | shift_matrix: failed | PositionalEncoding: failed not-a-buffer
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(seq_len)[:, None] * w
    return torch.stack([angles.sin(), angles.cos()], -1).view(seq_len, d_model).float()


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j], M[j, j + 1] = math.cos(w), math.sin(w)
        M[j + 1, j], M[j + 1, j + 1] = math.sin(w), -math.cos(w)
    return M


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        table = make_table(max_len, d_model)
        self.register_buffer("pe", table.clone())
        self.table = table

    def forward(self, x):
        if x.shape[-2] > self.table.shape[0]:
            raise ValueError("too long")
        return x + self.table[: x.shape[-2]]
