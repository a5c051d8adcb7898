# positional_encoding: failed | PositionalEncoding: failed raised
import math

import torch
from torch import nn


_out = torch.zeros(512, 512)


def positional_encoding(seq_len, d_model):
    pe = _out[:seq_len, :d_model]
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** (2 * (j // 2) / d_model)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


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
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, inputs):
        if inputs.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return inputs + self.pe[: inputs.shape[-2]]
