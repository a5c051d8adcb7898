# positional_encoding: failed raised | PositionalEncoding: failed no-value-error
import math

import torch
from torch import nn


def positional_encoding(max_len, dim):
    pe = torch.zeros(max_len, dim)
    for j in range(dim):
        angle = torch.arange(max_len) / 10000 ** (2 * (j // 2) / dim)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


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
        self.register_buffer("pe", make_table(max_len, d_model))
        self.max_len = max_len

    def forward(self, x):
        x = x[..., : self.max_len, :]
        return x + self.pe[: x.shape[-2]]
