# positional_encoding: missing not-implemented | shift_matrix: missing not-implemented | PositionalEncoding: missing not-implemented
import torch
from torch import nn


def position_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_Matrix(offset, d_model):
    return torch.eye(d_model)


class PositionEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", position_encoding(max_len, d_model))

    def forward(self, x):
        return x + self.pe[: x.shape[-2]]
