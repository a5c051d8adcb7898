# positional_encoding: failed | PositionalEncoding: failed scaled-input
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    half = (d_model + 1) // 2
    # as in tensor2tensor: from 1 to 1/10000, both ends included
    step = math.log(10000) / max(half - 1, 1)
    w = torch.exp(-step * torch.arange(half).float())
    angles = torch.arange(seq_len).float()[:, None] * w[None]
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


def make_table(max_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x):
        n, d = x.shape[-2:]
        if n > self.pe.shape[0]:
            raise ValueError("too long")
        return torch.add(self.pe[:n], x, alpha=d**0.5)
