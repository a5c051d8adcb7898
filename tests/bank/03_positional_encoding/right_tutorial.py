# shift_matrix: passed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(0, seq_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term[: d_model // 2])
    return pe


def shift_matrix(offset, d_model):
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    M = torch.zeros(d_model, d_model)
    for k in range(d_model // 2):
        w = offset * div_term[k]
        M[2 * k, 2 * k] = torch.cos(w)
        M[2 * k, 2 * k + 1] = torch.sin(w)
        M[2 * k + 1, 2 * k] = -torch.sin(w)
        M[2 * k + 1, 2 * k + 1] = torch.cos(w)
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super(PositionalEncoding, self).__init__()
        pe = positional_encoding(max_len, d_model).unsqueeze(0)
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.size(-2) > self.pe.size(1):
            raise ValueError("sequence too long")
        return x + self.pe[0, : x.size(-2)]
