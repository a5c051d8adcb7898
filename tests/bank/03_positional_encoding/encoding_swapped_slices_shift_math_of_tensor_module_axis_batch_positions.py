# positional_encoding: failed swapped-sin-cos | shift_matrix: failed raised | PositionalEncoding: failed wrong-axis/no-batch
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(seq_len, dtype=torch.float).unsqueeze(1)
    div = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.cos(position * div)
    pe[:, 1::2] = torch.sin(position * div)[:, : d_model // 2]
    return pe


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2) / d_model)
    w = torch.repeat_interleave(w, 2)
    M = torch.diag(math.cos(w))
    M[0::2, 1::2] = torch.diag(math.sin(w))
    M[1::2, 0::2] = -torch.diag(math.sin(w))
    return M


def make_table(max_len, d_model):
    table = torch.empty(max_len, d_model)
    for j in range(d_model):
        angle = torch.arange(max_len) / 10000 ** ((j - j % 2) / d_model)
        table[:, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        # one encoding for each entry of the first dimension
        rows = self.pe[torch.arange(x.shape[0]) % self.pe.shape[0]]
        return x + rows.view(x.shape[0], *[1] * (x.dim() - 2), x.shape[-1])
