# positional_encoding: failed wrong-frequency | PositionalEncoding: failed no-batch/raised
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for i in range(d_model):
            if i % 2 == 0:
                pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d_model)))
            else:
                pe[pos, i] = math.cos(pos / (10000 ** ((2 * i) / d_model)))
    return pe


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        batch, seq, d_model = x.shape
        if seq > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[:seq].expand(batch, seq, d_model)
