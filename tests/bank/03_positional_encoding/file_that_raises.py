# positional_encoding: failed raised | shift_matrix: failed raised | PositionalEncoding: failed raised
import math

import torch
from torch import nn


pe = positional_encoding(10, 8)  # above its definition


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("table", positional_encoding(max_len, d_model), persistent=False)

    def forward(self, x):
        seq = x.size(-2)
        if seq > self.max_len:
            raise ValueError(f"{seq} tokens, but max_len is {self.max_len}")
        return x + self.table[:seq, :]
