# positional_encoding: failed wrong-shape/odd-crash | PositionalEncoding: failed wrong-axis/wrong-shape/raised
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(seq_len)[:, None] * w
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def make_table(max_len, d_model):
    table = torch.empty(max_len, d_model)
    for j in range(d_model):
        angle = torch.arange(max_len) / 10000 ** ((j - j % 2) / d_model)
        table[:, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("pe", make_table(max_len, d_model).unsqueeze(1))  # (max_len, 1, d_model)

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError("too long")
        return x + self.pe[: x.size(0)]
