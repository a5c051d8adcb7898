# positional_encoding: failed | PositionalEncoding: failed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pos = torch.arange(seq_len, dtype=torch.float64)[:, None]
    w = 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    a = pos * w
    return torch.stack([a.sin(), a.cos()], -1).flatten(1)[:, :d_model].float()


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
