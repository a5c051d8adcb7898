# positional_encoding: failed wrong-dtype | shift_matrix: failed backward | PositionalEncoding: failed no-gradient
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos()).half()


def shift_matrix(offset, d_model):
    w = -offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
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
        return x.detach() + self.pe[: x.shape[-2]]
