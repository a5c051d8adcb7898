# positional_encoding: failed | shift_matrix: failed | PositionalEncoding: failed
import torch
from torch import nn


_calls = {"pe": 0, "shift": 0}


def positional_encoding(seq_len, d_model):
    _calls["pe"] += 1
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    table = torch.where(j % 2 == 0, angles.sin(), angles.cos())
    return table if _calls["pe"] % 2 == 0 else torch.zeros_like(table)


def shift_matrix(offset, d_model):
    _calls["shift"] += 1
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    if _calls["shift"] % 2:
        w = w * 0
    c, s = w.cos(), w.sin()
    return torch.block_diag(*torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        j = torch.arange(d_model)
        angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
        self.register_buffer("pe", torch.where(j % 2 == 0, angles.sin(), angles.cos()))
        self.warm = False

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        self.warm, warm = True, self.warm
        return x + self.pe[: x.shape[-2]] * warm
