# positional_encoding: failed | shift_matrix: failed wrong-shape | PositionalEncoding: failed not-a-buffer
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / 512)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    return torch.diag(torch.ones(d_model), offset)


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len

    def forward(self, x):
        d_model, max_len = self.d_model, self.max_len
        if x.shape[-2] > max_len:
            raise ValueError("too long")
        return x + make_table(max_len, d_model)[: x.shape[-2]].to(x.device)
