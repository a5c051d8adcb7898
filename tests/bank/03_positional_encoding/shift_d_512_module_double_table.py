# shift_matrix: failed | PositionalEncoding: failed wrong-dtype
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / 512)
    c, s = w.cos(), w.sin()
    return torch.block_diag(*torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model).double())

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
