# positional_encoding: failed swapped-sin-cos | PositionalEncoding: failed no-batch/raised/wrong-shape
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.empty(seq_len, d_model)
    for p in range(seq_len):
        for j in range(d_model):
            a = p / 10000 ** ((j - j % 2) / d_model)
            # odd columns: sin
            pe[p, j] = math.sin(a) if j % 2 else math.cos(a)
    return pe


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
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


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model).unsqueeze(0))

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError("too long")
        return x + self.pe[:, : x.size(1)]
