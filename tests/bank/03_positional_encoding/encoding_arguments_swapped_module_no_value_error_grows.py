# positional_encoding: failed | PositionalEncoding: failed no-value-error
import torch
from torch import nn


def positional_encoding(d_model, seq_len):
    pe = torch.zeros(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** (2 * (j // 2) / d_model)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


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
        self.d_model = d_model
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        d_model, max_len = self.d_model, x.shape[-2]
        if max_len > self.pe.shape[0]:
            self.pe = make_table(max_len, d_model).to(self.pe)
        return x + self.pe[:max_len]
