# shift_matrix: failed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    w = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(seq_len, dtype=torch.float64), w)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].float()


class Shift(torch.Tensor):
    offset = 0

    def __matmul__(self, pe):
        sines, cosines = pe[0::2], pe[1::2]
        w = self.offset * 10000 ** (-torch.arange(0, len(pe), 2) / len(pe))
        out = torch.empty_like(pe)
        out[0::2] = sines * w.cos() + cosines * w.sin()
        out[1::2] = cosines * w.cos() - sines * w.sin()
        return out


def shift_matrix(offset, d_model):
    m = torch.zeros(d_model, d_model).as_subclass(Shift)
    m.offset = offset
    return m


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
