# positional_encoding: failed wrong-frequency | shift_matrix: failed wrong-shape | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for k in range(seq_len):
        for j in range(d_model):
            i = j // 2
            denominator = 10000 ** (i / d_model)
            pe[k, j] = math.sin(k / denominator) if j % 2 == 0 else math.cos(k / denominator)
    return pe


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    c, s = w.cos(), w.sin()
    return torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        return x + self.pe[: x.shape[-2]]
