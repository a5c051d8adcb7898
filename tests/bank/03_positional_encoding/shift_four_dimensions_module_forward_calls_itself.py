# shift_matrix: failed wrong-shape | PositionalEncoding: failed raised
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    n = d_model // 2
    M = torch.zeros(n, 2, n, 2)
    for i in range(n):
        w = offset / 10000 ** (2 * i / d_model)
        M[i, :, i, :] = torch.tensor([[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]])
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return self.forward(x) + self.pe[: x.shape[-2]]
