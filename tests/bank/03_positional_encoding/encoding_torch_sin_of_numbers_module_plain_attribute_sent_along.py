# positional_encoding: failed raised | PositionalEncoding: failed not-a-buffer
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for j in range(d_model):
            angle = pos / 10000 ** (2 * (j // 2) / d_model)
            pe[pos, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
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
        self.max_len = max_len
        self.table = make_table(max_len, d_model)

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError("too long")
        # works on the GPU too
        return x + self.table[: x.shape[-2]].to(x)
