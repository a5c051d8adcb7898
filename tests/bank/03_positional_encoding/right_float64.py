# shift_matrix: passed
import torch
import torch.nn as nn


def positional_encoding(seq_len: int, d_model: int) -> torch.Tensor:
    j = torch.arange(d_model).double()
    pos = torch.arange(seq_len).double()
    angles = torch.outer(pos, torch.pow(10000, -(j - j % 2) / d_model))
    return torch.where(j % 2 == 0, angles.sin(), angles.cos()).to(torch.float32)


def shift_matrix(offset: int, d_model: int) -> torch.Tensor:
    w = torch.pow(10000.0, -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    w = offset * w
    m = torch.zeros(d_model, d_model, dtype=torch.float64)
    even = torch.arange(0, d_model, 2)
    m[even, even] = w.cos()
    m[even + 1, even + 1] = w.cos()
    m[even, even + 1] = w.sin()
    m[even + 1, even] = -w.sin()
    return m.to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        # double inside, and back to what comes in when it is used
        self.register_buffer("_pe", positional_encoding(max_len, d_model).double(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(self._pe) < x.shape[-2]:
            raise ValueError("x is longer than max_len")
        return (x + self._pe[: x.shape[-2]]).to(x.dtype)
