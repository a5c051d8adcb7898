# positional_encoding: failed | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


class Cache:
    table = None


def positional_encoding(seq_len, d_model):
    if Cache.table is None or Cache.table.shape[1] < d_model or Cache.table.shape[0] < seq_len:
        j = torch.arange(d_model)
        angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
        Cache.table = torch.where(j % 2 == 0, angles.sin(), angles.cos())
    return Cache.table[:seq_len, :d_model].clone()


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


def make_table(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(max_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        try:
            return x + self.pe[torch.arange(x.shape[-2])]
        except IndexError:
            raise RuntimeError("sequence too long")
