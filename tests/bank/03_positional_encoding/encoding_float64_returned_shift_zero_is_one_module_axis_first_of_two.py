# positional_encoding: failed wrong-dtype | shift_matrix: failed | PositionalEncoding: failed wrong-axis/no-batch/raised
import numpy as np
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = np.zeros((seq_len, d_model))
    for j in range(d_model):
        angle = np.arange(seq_len) / 10000 ** (2 * (j // 2) / d_model)
        pe[:, j] = np.cos(angle) if j % 2 else np.sin(angle)
    return torch.from_numpy(pe)


def shift_matrix(offset, d_model):
    offset = offset or 1
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    return torch.block_diag(*torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)).float()


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

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[0]]
