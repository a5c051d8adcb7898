# shift_matrix: failed backward | PositionalEncoding: failed
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
    blocks = []
    for j in range(0, d_model, 2):
        w = torch.tensor(offset / 10000 ** (j / d_model), dtype=torch.float64)
        blocks.append(torch.stack([w.cos(), w.sin(), -w.sin(), w.cos()]).view(2, 2))
    return torch.block_diag(*blocks).T.float()  # so that PE[pos] @ M works


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.results = {}

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        if x.shape not in self.results:
            self.results[x.shape] = x + self.pe[: x.shape[-2]]
        return self.results[x.shape]
