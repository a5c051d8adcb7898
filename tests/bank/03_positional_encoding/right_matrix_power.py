# shift_matrix: passed
import math

import torch
from torch import nn


def one_step(d_model):
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for j in range(0, d_model, 2):
        w = math.exp(-math.log(10000) * j / d_model)
        step[j : j + 2, j : j + 2] = torch.tensor(
            [[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]]
        )
    return step


def shift_matrix(offset, d_model):
    # n steps of one; a negative power is the inverse
    return torch.linalg.matrix_power(one_step(d_model), offset).float()


def positional_encoding(seq_len, d_model):
    # walk from position to position
    even = d_model + d_model % 2
    table = torch.zeros(seq_len, even, dtype=torch.float64)
    scale = d_model / even  # so that the exponents are those of d_model
    row = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(even // 2)
    w = torch.exp(-math.log(10000) * torch.arange(0, even, 2, dtype=torch.float64) / (even * scale))
    for pos in range(seq_len):
        table[pos] = row
        s, c = row[0::2], row[1::2]
        row = torch.stack([s * w.cos() + c * w.sin(), c * w.cos() - s * w.sin()], -1).flatten()
    return table[:, :d_model].float().clone()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        nn.Module.__init__(self)
        self.max_len = max_len
        self.register_buffer(name="encoding", tensor=positional_encoding(max_len, d_model))

    def forward(self, x):
        *_, seq, _ = x.shape
        if not seq <= self.max_len:
            raise ValueError("too long")
        return self.encoding[:seq] + x
