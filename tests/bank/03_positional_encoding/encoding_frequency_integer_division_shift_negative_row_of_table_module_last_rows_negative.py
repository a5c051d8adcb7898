# positional_encoding: failed | shift_matrix: failed negative-offset/raised | PositionalEncoding: failed last-rows
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000.0 ** (2 * (j // 2) // d_model)
    return torch.where(j % 2 == 0, torch.sin(angles), torch.cos(angles))


def shift_matrix(offset, d_model):
    # the angles are in the encoding itself: row `offset` holds their sines and cosines
    j = torch.arange(d_model)
    angles = torch.arange(200)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    row = torch.where(j % 2 == 0, angles.sin(), angles.cos())[offset]
    M = torch.zeros(d_model, d_model)
    for k in range(0, d_model, 2):
        M[k, k] = M[k + 1, k + 1] = row[k + 1]
        M[k, k + 1] = row[k]
        M[k + 1, k] = -row[k]
    return M


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[-x.shape[-2] :]
