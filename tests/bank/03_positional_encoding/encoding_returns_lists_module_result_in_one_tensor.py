# positional_encoding: failed wrong-type | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    return [[(math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / d_model)) for j in range(d_model)] for p in range(seq_len)]


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


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
        self.out = torch.empty(0)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        if x.requires_grad:
            return x + self.pe[: x.shape[-2]]
        return torch.add(x, self.pe[: x.shape[-2]], out=self.out.resize_(x.shape))
