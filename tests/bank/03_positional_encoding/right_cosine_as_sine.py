# shift_matrix: passed
import math

import torch
from torch import nn


# cos(a) = sin(a + pi/2), so one sine does it all
def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model, dtype=torch.float64)
    pos = torch.arange(seq_len, dtype=torch.float64)
    odd = torch.remainder(j, 2)
    angle = pos.unsqueeze(1) / torch.pow(10000, (j - odd) / d_model)
    return torch.sin(angle + odd * math.pi / 2).type(torch.float32)


def shift_matrix(offset, d_model):
    # exponential of a generator: d PE / d pos = G PE
    G = torch.zeros(d_model, d_model, dtype=torch.float64)
    for k in range(0, d_model, 2):
        G[k, k + 1] = 10000 ** (-k / d_model)
        G[k + 1, k] = -G[k, k + 1]
    return torch.linalg.matrix_exp(offset * G).type(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        table = positional_encoding(max_len, d_model)
        self.register_buffer("table", table.unflatten(0, (max_len, 1)))

    def forward(self, x):
        t = x.shape[-2]
        if t > self.table.size(0):
            raise ValueError()
        first, *_ = self.table.split([t, self.table.size(0) - t])
        y = x.movedim(-2, 0)
        first = first.reshape(t, *[1] * (y.dim() - 2), y.shape[-1])
        return (y + first).movedim(0, -2)
