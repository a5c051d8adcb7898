# positional_encoding: failed one-based | shift_matrix: failed | PositionalEncoding: failed not-a-buffer
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pos = torch.ones(seq_len).cumsum(0)
    w = 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    a = pos[:, None] * w
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)[:, :d_model]


def shift_matrix(offset, d_model):
    j = torch.arange(d_model)
    angles = (torch.arange(d_model)[:, None] + offset) / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def make_table(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(max_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.pe = make_table(max_len, d_model)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
