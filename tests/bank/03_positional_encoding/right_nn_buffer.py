# shift_matrix: passed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    i = torch.arange(d_model, dtype=torch.float64).div(2, rounding_mode="floor")
    angles = torch.arange(seq_len, dtype=torch.float64)[:, None] / 10000 ** (2 * i / d_model)
    angles[:, 0::2] = angles[:, 0::2].sin()
    angles[:, 1::2] = angles[:, 1::2].cos()
    return angles.float()


def shift_matrix(offset, d_model):
    # columns: where do the unit vectors go?
    out = torch.empty(d_model, d_model)
    for column in range(d_model):
        unit = torch.zeros(d_model // 2, 2)
        unit.view(-1)[column] = 1
        w = torch.tensor([offset / 10000 ** (2 * i / d_model) for i in range(d_model // 2)])
        s, c = unit.unbind(-1)
        moved = torch.stack((s * w.cos() + c * w.sin(), c * w.cos() - s * w.sin()), dim=-1)
        out[:, column] = moved.view(-1)
    return out


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.p = nn.Buffer(positional_encoding(seq_len=max_len, d_model=d_model))

    def forward(self, x):
        if x.shape[-2] > self.p.shape[0]:
            raise ValueError("sequence longer than the table")
        table = self.p[: x.shape[-2]]
        for _ in range(x.dim() - 2):
            table = table.unsqueeze(0)
        return x + table.expand_as(x)
