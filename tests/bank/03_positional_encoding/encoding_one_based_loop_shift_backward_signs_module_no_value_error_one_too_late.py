# positional_encoding: failed one-based | shift_matrix: failed backward | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    out = []
    for number, _ in enumerate(range(seq_len), start=1):
        row = []
        for i in range(0, d_model, 2):
            row.append(math.sin(number / 10000 ** (i / d_model)))
            row.append(math.cos(number / 10000 ** (i / d_model)))
        out.append(row[:d_model])
    return torch.tensor(out)


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        # rotation matrix
        M[j, j], M[j, j + 1] = math.cos(w), -math.sin(w)
        M[j + 1, j], M[j + 1, j + 1] = math.sin(w), math.cos(w)
    return M


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        max_len = max_len + 1
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] - 1 > self.max_len:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
