# positional_encoding: failed swapped-sin-cos | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    """The first feature is number 1, which is odd, so it is a cosine."""
    columns = []
    for j in range(1, d_model + 1):
        angle = torch.arange(seq_len) / 10000 ** (2 * ((j - 1) // 2) / d_model)
        columns.append(angle.sin() if j % 2 == 0 else angle.cos())
    return torch.stack(columns, 1)


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        self.pe = self.pe[: x.shape[-2]]  # shorter is enough
        return x + self.pe
