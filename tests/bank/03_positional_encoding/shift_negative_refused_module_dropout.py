# shift_matrix: failed negative-offset/raised | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(seq_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


def shift_matrix(offset, d_model):
    if offset < 0:
        raise ValueError("positions only go forward")
    M = torch.zeros(d_model, d_model)
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return self.dropout(x + self.pe[: x.shape[-2]])
