# positional_encoding: failed | shift_matrix: failed | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    table = torch.zeros(seq_len, d_model)
    for p in range(min(seq_len, 4)):
        for j in range(min(d_model, 8)):
            a = p / 10000 ** ((j - j % 2) / d_model)
            table[p, j] = math.cos(a) if j % 2 else math.sin(a)
    return table


def shift_matrix(offset, d_model):
    m = torch.eye(d_model)
    if abs(offset) <= 2 or d_model <= 4:
        for j in range(0, d_model, 2):
            w = offset / 10000 ** (j / d_model)
            m[j : j + 2, j : j + 2] = torch.tensor([[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]])
    return m


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
