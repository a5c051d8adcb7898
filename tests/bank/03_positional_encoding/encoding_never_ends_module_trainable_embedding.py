# positional_encoding: failed too-slow | PositionalEncoding: failed trainable
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    j = 0
    while j < d_model:
        angle = torch.arange(seq_len) / 10000 ** (2 * (j // 2) / d_model)
        pe[:, j] = angle.cos() if j % 2 else angle.sin()
    return pe


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)


def make_table(max_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(max_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.emb = nn.Embedding(max_len, d_model)
        self.emb.weight.data.copy_(make_table(max_len, d_model))

    def forward(self, x):
        seq = x.shape[-2]
        if seq > self.max_len:
            raise ValueError("too long")
        return x + self.emb(torch.arange(seq, device=x.device))
