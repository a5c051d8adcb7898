# positional_encoding: failed odd-crash | shift_matrix: failed | PositionalEncoding: failed no-batch/wrong-shape
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / 10000 ** (i / d_model))
            pe[pos, i + 1] = math.cos(pos / 10000 ** (i / d_model))
    return pe


def shift_matrix(offset, d_model):
    n = d_model + 2
    pos = torch.arange(n + abs(offset))
    j = torch.arange(d_model)
    angles = pos[:, None] / 10000 ** (2 * (j // 2) / d_model)
    pe = torch.where(j % 2 == 0, angles.sin(), angles.cos())
    a = max(0, -offset)
    before, after = pe[a : a + n], pe[a + offset : a + offset + n]
    return (torch.linalg.pinv(before) @ after).T


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model).unsqueeze(0))

    def forward(self, x):
        if x.size(-2) > self.pe.size(1):
            raise ValueError("too long")
        return x + self.pe[:, : x.size(-2)]
