# positional_encoding: failed raised | shift_matrix: failed | PositionalEncoding: failed trainable/wrong-parameters
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** (2 * (j // 2) / d_modle)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


def shift_matrix(offset, d_model):
    # sin w = w and cos w = 1 for a small w
    M = torch.eye(d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j + 1] = w
        M[j + 1, j] = -w
    return M


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))
        self.proj = nn.Linear(d_model, d_model)  # maybe needed later

    def forward(self, x):
        if x.shape[-2] > len(self.pe):
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
