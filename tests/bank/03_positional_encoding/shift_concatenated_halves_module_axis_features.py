# shift_matrix: failed concatenated | PositionalEncoding: failed
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
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    C, S = torch.diag(w.cos()), torch.diag(w.sin())
    return torch.cat([torch.cat([C, S], 1), torch.cat([-S, C], 1)], 0).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError("too long")
        seq, d = x.shape[-2:]
        return x + self.pe[:seq].reshape(d, seq).T
