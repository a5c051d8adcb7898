# positional_encoding: failed | shift_matrix: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(1, seq_len + 1)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.cos(), angles.sin())


def shift_matrix(offset, d_model):
    half = d_model // 2
    M = torch.zeros(d_model, d_model)
    for i in range(half):
        w = offset / 1000 ** (2 * i / d_model)
        M[i, i] = M[half + i, half + i] = math.cos(w)
        M[i, half + i] = math.sin(w)
        M[half + i, i] = -math.sin(w)
    return M


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
