# shift_matrix: failed wrong-frequency | PositionalEncoding: failed scaled-input
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        w = offset / 10000 ** (i / d_model)
        M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = math.cos(w)
        M[2 * i, 2 * i + 1] = math.sin(w)
        M[2 * i + 1, 2 * i] = -math.sin(w)
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model = d_model
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        x = x * math.sqrt(self.d_model)
        return x + self.pe[: x.shape[-2]]
