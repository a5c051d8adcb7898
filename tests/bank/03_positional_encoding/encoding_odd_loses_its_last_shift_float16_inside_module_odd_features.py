# positional_encoding: failed wrong-shape/odd-crash | shift_matrix: failed | PositionalEncoding: failed raised
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pairs = d_model // 2
    w = 10000 ** (-2 * torch.arange(pairs, dtype=torch.float64) / d_model)
    angles = torch.arange(seq_len)[:, None] * w
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(seq_len, 2 * pairs).float()


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).float() / d_model)
    c, s = w.half().cos().float(), w.half().sin().float()
    return torch.block_diag(*torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[1]:
            raise ValueError("too long")
        return x + self.pe[0, : x.shape[-2]]
