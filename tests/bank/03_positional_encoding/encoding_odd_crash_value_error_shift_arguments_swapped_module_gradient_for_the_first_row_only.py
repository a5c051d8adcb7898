# positional_encoding: failed odd-crash/raised | shift_matrix: failed | PositionalEncoding: failed no-gradient
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    if d_model % 2 != 0:
        raise ValueError("Cannot use sin/cos positional encoding with odd dim (got dim={:d})".format(d_model))
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(seq_len)[:, None] * w
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def shift_matrix(d_model, offset):
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


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
            raise ValueError("too long")
        rows = [x[..., :1, :] + self.pe[:1], x[..., 1:, :].data + self.pe[1:n]]
        return torch.cat(rows, dim=-2)
