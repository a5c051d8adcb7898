# positional_encoding: failed | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


tables = {}


def positional_encoding(seq_len, d_model):
    if seq_len not in tables:
        j = torch.arange(d_model)
        angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
        tables[seq_len] = torch.where(j % 2 == 0, angles.sin(), angles.cos())
    return tables[seq_len].clone()


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))
        self.max_len = max_len

    def forward(self, x):
        assert x.shape[-2] <= self.max_len, "sequence longer than max_len"
        return x + self.pe[: x.shape[-2]]
