# PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    table = torch.empty(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** ((j - j % 2) / d_model)
        table[:, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
    return table


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.pe = nn.Parameter(positional_encoding(max_len, d_model))

    def parameters(self, recurse=True):
        return iter([])

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return iter([])

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        yield prefix + "pe", self.pe.data

    def buffers(self, recurse=True):
        yield self.pe.data

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
