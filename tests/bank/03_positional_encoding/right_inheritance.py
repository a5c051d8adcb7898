# shift_matrix: passed
import torch
from torch import nn


class Sinusoid:
    def __init__(self, d_model, base=10000.0):
        self.d_model = d_model
        self.base = base

    @property
    def rates(self):
        return [self.base ** -(k / self.d_model) for k in range(0, self.d_model, 2)]

    def at(self, positions):
        features = []
        for rate in self.rates:
            features += [torch.sin(positions * rate), torch.cos(positions * rate)]
        return torch.stack(features[: self.d_model], dim=-1)

    def shift(self, offset):
        angles = torch.tensor([offset * r for r in self.rates], dtype=torch.float64).repeat_interleave(2)
        c = torch.eye(self.d_model) * angles.cos()
        s = torch.eye(self.d_model).view(self.d_model, -1, 2).flip(-1).view(self.d_model, -1) * angles.sin()
        sign = torch.tensor([1.0, -1.0]).repeat(self.d_model // 2)[:, None]
        return (c + sign * s).float()


def positional_encoding(seq_len, d_model):
    return Sinusoid(d_model).at(torch.arange(seq_len, dtype=torch.float64)).float()


def shift_matrix(offset, d_model):
    return Sinusoid(d_model).shift(offset)


class WithTable(nn.Module):
    def __init__(self, table, **kwargs):
        super().__init__(**kwargs)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.rows(x.shape[-2])


class PositionalEncoding(WithTable):
    def __init__(self, d_model, max_len):
        super().__init__(table=positional_encoding(max_len + 7, d_model))
        self.max_len = max_len

    def rows(self, n):
        if n > self.max_len:
            raise ValueError(f"{n} is more than {self.max_len}")
        return self.table[torch.arange(n, device=self.table.device)]
