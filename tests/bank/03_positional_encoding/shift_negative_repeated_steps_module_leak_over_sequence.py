# shift_matrix: failed negative-offset | PositionalEncoding: failed
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(seq_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


def shift_matrix(offset, d_model):
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for j in range(0, d_model, 2):
        w = 10000 ** (-j / d_model)
        step[j, j] = step[j + 1, j + 1] = math.cos(w)
        step[j, j + 1] = math.sin(w)
        step[j + 1, j] = -math.sin(w)
    M = torch.eye(d_model, dtype=torch.float64)
    for _ in range(offset):
        M = step @ M
    return M.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        x = x - x.mean(dim=-2, keepdim=True)  # centre first
        return x + self.pe[: x.shape[-2]]
