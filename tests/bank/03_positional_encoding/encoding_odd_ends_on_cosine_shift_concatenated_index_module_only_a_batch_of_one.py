# positional_encoding: failed | shift_matrix: failed concatenated | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** (2 * (j // 2) / d_model)
        last_of_odd = d_model % 2 == 1 and j == d_model - 1
        pe[:, j] = angle.cos() if j % 2 or last_of_odd else angle.sin()
    return pe


def shift_matrix(offset, d_model):
    half = d_model // 2
    M = torch.zeros(d_model, d_model)
    for i in range(half):
        w = offset / 10000 ** (2 * i / d_model)
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
        return (x.squeeze(0) + self.pe[: x.shape[-2]]).unsqueeze(0)
