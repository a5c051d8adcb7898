# positional_encoding: failed wrong-frequency | shift_matrix: failed wrong-base | PositionalEncoding: failed replaces-input
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model, dtype=torch.float32)
    angles = torch.arange(seq_len, dtype=torch.float32)[:, None] / 10000 ** (j / d_model)
    pe = angles.clone()
    pe[:, 0::2] = torch.sin(angles[:, 0::2])
    pe[:, 1::2] = torch.cos(angles[:, 1::2])
    return pe


def shift_matrix(offset, d_model):
    w = offset * 1000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    return torch.block_diag(*torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)).float()


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        out = torch.zeros_like(x)
        out = out + self.pe[: x.shape[-2]]
        return out
