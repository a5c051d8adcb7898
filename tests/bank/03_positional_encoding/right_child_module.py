# shift_matrix: passed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    half = math.ceil(d_model / 2)
    w = torch.exp(-torch.arange(half, dtype=torch.float64) * 2 / d_model * math.log(10_000))
    a = torch.einsum("p,i->pi", torch.arange(seq_len, dtype=torch.float64), w)
    out = torch.empty(seq_len, 2 * half)
    out[:, ::2], out[:, 1::2] = a.sin(), a.cos()
    return out[:, :d_model].clone()


def shift_matrix(offset, d_model):
    w = torch.exp(-torch.arange(d_model // 2, dtype=torch.float64) * 2 / d_model * math.log(10_000)) * offset
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    return (torch.kron(torch.diag(w.cos()), torch.eye(2, dtype=torch.float64)) + torch.kron(torch.diag(w.sin()), turn)).float()


class Table(nn.Module):
    """Holds the encodings and gives the first n of them."""

    def __init__(self, rows):
        super().__init__()
        self.register_buffer("rows", rows)

    def __len__(self):
        return self.rows.shape[0]

    def forward(self, n):
        return self.rows[:n]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.table = Table(positional_encoding(max_len, d_model))
        self.dropout = nn.Dropout(p=0.0)

    def forward(self, x):
        n = x.shape[-2]
        if n > len(self.table):
            raise ValueError("too long: %d" % n)
        return self.dropout(x + self.table(n))
