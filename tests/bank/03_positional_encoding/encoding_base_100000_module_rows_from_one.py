# positional_encoding: failed wrong-base | PositionalEncoding: failed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    base = 100000.0
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] * base ** (-2.0 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        max_len = max_len + 1  # row 0 is for the padding
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        n = x.shape[-2]
        if n > self.max_len:
            raise ValueError("too long")
        return x + self.pe[1 : n + 1]
