# shift_matrix: failed wrong-shape | PositionalEncoding: failed raised
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    table = torch.empty(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** ((j - j % 2) / d_model)
        table[:, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
    return table


def shift_matrix(offset, d_model):
    w = torch.tensor(float(offset))
    return torch.tensor([[w.cos(), w.sin()], [-w.sin(), w.cos()]])


class PositionalEncoding(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        d_model, max_len = dim, length
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
