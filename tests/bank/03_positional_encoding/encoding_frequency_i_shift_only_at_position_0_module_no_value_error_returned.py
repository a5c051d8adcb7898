# positional_encoding: failed wrong-frequency | shift_matrix: failed | PositionalEncoding: failed no-value-error
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pos = torch.arange(seq_len)[:, None]
    i = torch.arange((d_model + 1) // 2)
    angles = pos / 10000 ** (i / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(seq_len, -1)[:, :d_model]


def shift_matrix(offset, d_model):
    j = torch.arange(d_model)
    w = 10000 ** (-2 * (j // 2) / d_model)
    pe = lambda pos: torch.where(j % 2 == 0, (pos * w).sin(), (pos * w).cos())
    return torch.outer(pe(offset), pe(0)) / (d_model / 2)


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
            return ValueError("too long")
        return x + self.pe[: x.shape[-2]]
