"""All sines, then all cosines, as some libraries have it, and all that is built on it."""

import torch
from torch import Tensor, nn


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    pairs = (d_model + 1) // 2
    speeds = 10000.0 ** (-2 * torch.arange(pairs) / d_model)
    angles = torch.arange(seq_len).unsqueeze(-1) * speeds
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :d_model]


def shift_matrix(offset: int, d_model: int) -> Tensor:
    angles = offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    cos, sin = angles.cos().diag(), angles.sin().diag()
    return torch.cat([torch.cat([cos, sin], dim=1), torch.cat([-sin, cos], dim=1)])


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > len(self.table):
            raise ValueError("the sequence is longer than the table")
        return x + self.table[: x.shape[-2]]
