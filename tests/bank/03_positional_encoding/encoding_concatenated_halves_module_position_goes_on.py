# positional_encoding: failed concatenated | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    half = (d_model + 1) // 2
    table = torch.zeros(seq_len, d_model)
    for pos in range(seq_len):
        for i in range(half):
            table[pos, i] = math.sin(pos / 10000 ** (2 * i / d_model))
        for i in range(d_model - half):
            table[pos, half + i] = math.cos(pos / 10000 ** (2 * i / d_model))
    return table


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
        self.position = 0

    def forward(self, x):
        n, longest = x.shape[-2], self.pe.shape[0]
        if n > longest:
            raise ValueError("too long")
        rows = torch.arange(self.position, self.position + n) % longest
        self.position += n  # where the next piece of the text starts
        return x + self.pe[rows]
