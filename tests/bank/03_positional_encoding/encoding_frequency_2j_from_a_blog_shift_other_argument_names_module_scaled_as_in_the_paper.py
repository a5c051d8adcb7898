# positional_encoding: failed wrong-frequency | shift_matrix: failed raised | PositionalEncoding: failed scaled-input
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d_model)))
            if i + 1 < d_model:
                pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / d_model)))
    return pe


def shift_matrix(k, dim):
    M = torch.zeros(dim, dim)
    for j in range(0, dim, 2):
        w = k / 10000 ** (j / dim)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    """Section 3.4: 'we multiply those weights by sqrt(d_model)'."""

    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model), persistent=False)
        self.scale = torch.tensor(d_model).sqrt()

    def forward(self, x):
        if x.size(-2) > self.pe.size(0):
            raise ValueError("too long")
        return torch.mul(x, self.scale) + self.pe[: x.size(-2)]
