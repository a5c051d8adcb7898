# shift_matrix: failed wrong-type | PositionalEncoding: failed no-value-error
import numpy as np
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    M = np.eye(d_model, dtype=np.float32)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j : j + 2, j : j + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        max_len = 5000
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
