# positional_encoding: failed | shift_matrix: failed | PositionalEncoding: failed input-changed
import math

import torch
from torch import nn


BIG = torch.tensor([[(math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / 64)) for j in range(64)] for p in range(256)])


def positional_encoding(seq_len, d_model):
    return BIG[:seq_len, :d_model].clone()


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for j in range(d_model):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = math.cos(w)
        if j % 2 == 0:
            M[j, j + 1] = math.sin(w)
        else:
            M[j, j - 1] = -math.sin(w)
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
        n = x.size(-2)
        if n > self.pe.size(0):
            raise ValueError("too long")
        out = x + self.pe[:n]
        x.data.copy_(out.data)
        return out
