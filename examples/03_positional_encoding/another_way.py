"""Right in another way: a cosine is a sine a quarter turn on, a Kronecker product, a flat table."""

import math

import torch
from torch import Tensor, nn


def turns(d_model: int) -> Tensor:
    hand = torch.div(torch.arange(d_model), 2, rounding_mode="floor")
    return torch.exp(-math.log(10_000) * 2 * hand.double() / d_model)  # (d_model,)


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    quarter = math.pi / 2 * (torch.arange(d_model) % 2)
    return torch.outer(torch.arange(seq_len).double(), turns(d_model)).add(quarter).sin().float()


def shift_matrix(offset: int, d_model: int) -> Tensor:
    angle = offset * turns(d_model)
    neighbour = torch.kron(torch.eye(d_model // 2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    return (angle.cos().diag() + angle.sin().unsqueeze(-1) * neighbour).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        rows = positional_encoding(max_len, d_model).flatten()
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        wanted = x.shape[-2] * x.shape[-1]
        if wanted > self.rows.numel():
            raise ValueError("longer than the table")
        return torch.add(self.rows[:wanted].view(x.shape[-2:]), x)
