# shift_matrix: failed | PositionalEncoding: failed not-a-buffer
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    return torch.roll(torch.eye(d_model), shifts=offset, dims=0)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        table = positional_encoding(max_len, d_model)
        self.max_len = max_len
        self.first = lambda n: table[:n]

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError("too long")
        return x + self.first(x.shape[-2])
