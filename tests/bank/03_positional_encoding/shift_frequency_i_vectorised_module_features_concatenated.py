# shift_matrix: failed wrong-frequency | PositionalEncoding: failed wrong-shape
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
    i = torch.arange(d_model // 2, dtype=torch.float64)
    w = offset * torch.exp(-math.log(10000.0) * i / d_model)
    M = torch.zeros(d_model // 2, 2, d_model // 2, 2, dtype=torch.float64)
    k = torch.arange(d_model // 2)
    M[k, 0, k, 0], M[k, 1, k, 1], M[k, 0, k, 1], M[k, 1, k, 0] = w.cos(), w.cos(), w.sin(), -w.sin()
    return M.reshape(d_model, d_model).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return torch.cat([x, self.pe[: x.shape[-2]].expand_as(x)], dim=-1)
