# positional_encoding: failed | shift_matrix: failed wrong-dtype | PositionalEncoding: failed not-a-buffer
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(seq_len).unsqueeze(1).float()
    i = torch.arange(0, d_model, 2).float()
    div_term = torch.exp(2 * i * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term[: d_model // 2])
    return pe


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model, dtype=torch.double)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class Rows(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("rows", rows)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.parts = [Rows(make_table(max_len, d_model))]

    def forward(self, x):
        rows = self.parts[0].rows
        if x.shape[-2] > rows.shape[0]:
            raise ValueError("too long")
        return x + rows[: x.shape[-2]]
