# positional_encoding: failed wrong-dtype | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.arange(seq_len)[:, None].repeat(1, d_model)
    for j in range(d_model):
        angle = pe[:, j] / 10000 ** (2 * (j // 2) / d_model)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


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

    def forward(self, x):
        n = x.shape[-2]
        if n > self.pe.shape[0]:
            raise IndexError(f"position {n - 1} is out of range")
        return x + self.pe[:n]
