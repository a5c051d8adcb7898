# shift_matrix: passed
import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=None)
def rates(d_model):
    return tuple(10000 ** (-2 * i / d_model) for i in range((d_model + 1) // 2))


_tables = {}


def positional_encoding(seq_len, d_model):
    key = (seq_len, d_model)
    if key not in _tables:
        angles = torch.arange(seq_len).double()[:, None] * torch.tensor(rates(d_model)).double()
        _tables[key] = torch.dstack([angles.sin(), angles.cos()]).flatten(1)[:, :d_model].float()
    return _tables[key].clone()


def shift_matrix(offset, d_model):
    angles = offset * torch.tensor(rates(d_model), dtype=torch.float64)
    m = torch.zeros(d_model // 2, 2, d_model // 2, 2)
    for k, a in enumerate(angles):
        m[k, :, k, :] = torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]])
    return m.flatten(0, 1).flatten(1)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        print("call", self.calls, tuple(x.shape))
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError(f"got {x.shape[-2]} tokens")
        out = x.clone()
        out += self.pe[: x.shape[-2]]
        return out
