# positional_encoding: failed | shift_matrix: failed | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    d_even = d_model + d_model % 2  # make room for a full last pair
    w = 10000 ** (-torch.arange(0, d_even, 2, dtype=torch.float64) / d_even)
    a = torch.arange(seq_len)[:, None] * w
    return torch.stack([a.sin(), a.cos()], dim=2).view(seq_len, d_even)[:, :d_model].float()


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.sin(w)
        M[j, j + 1] = math.cos(w)
        M[j + 1, j] = -math.cos(w)
    return M


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))
        self.rows = None

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        if self.rows is None:
            self.rows = self.pe[: x.shape[-2]]
        return x + self.rows
