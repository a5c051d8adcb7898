# positional_encoding: failed wrong-type | shift_matrix: failed | PositionalEncoding: failed not-a-buffer/trainable
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pass


def shift_matrix(offset, d_model):
    j = torch.arange(d_model)
    w = 10000 ** (-2 * (j // 2) / d_model)
    pe = lambda pos: torch.where(j % 2 == 0, (pos * w).sin(), (pos * w).cos())
    # M PE[1] = PE[1 + offset], one feature at a time
    return torch.diag(pe(1 + offset) / pe(1))


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.pe = nn.Parameter(make_table(max_len, d_model), requires_grad=False)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
