# shift_matrix: failed moves-features
import math

import torch
from torch import nn


def frequencies(d_model):
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def positional_encoding(seq_len, d_model):
    angles = torch.arange(seq_len).unsqueeze(1) * frequencies(d_model)
    table = torch.zeros(seq_len, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)[:, : d_model // 2]
    return table


def shift_matrix(offset, d_model):
    m = torch.zeros(d_model, d_model)
    for i, w in enumerate(frequencies(d_model).tolist()):
        c, s = math.cos(offset * w), math.sin(offset * w)
        m[2 * i, 2 * i], m[2 * i, 2 * i + 1] = c, s
        m[2 * i + 1, 2 * i], m[2 * i + 1, 2 * i + 1] = -s, c
    return torch.eye(d_model).roll(offset, dims=0)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("the sequence is longer than max_len")
        return x + self.pe[: x.shape[-2]]
