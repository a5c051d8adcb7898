# shift_matrix: passed
import torch
from torch import nn


def phases(position, d_model):
    pairs = (d_model + 1) // 2
    w = 10000.0 ** (-2 * torch.arange(pairs, dtype=torch.float64) / d_model)
    angle = torch.as_tensor(position, dtype=torch.float64)[..., None] * w
    return torch.polar(torch.ones_like(angle), angle)


def positional_encoding(seq_len, d_model):
    z = phases(torch.arange(seq_len), d_model)
    z = torch.complex(z.imag, z.real)  # sine first
    return torch.view_as_real(z).reshape(seq_len, -1)[:, :d_model].float().contiguous()


def shift_matrix(offset, d_model):
    z = phases(offset, d_model)
    blocks = [[torch.zeros(2, 2) for _ in z] for _ in z]
    for k, c in enumerate(z):
        blocks[k][k] = torch.tensor([[c.real, c.imag], [-c.imag, c.real]], dtype=torch.float32)
    return torch.cat([torch.cat(row, dim=1) for row in blocks], dim=0)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model)[None, None])

    def forward(self, x):
        n = x.shape[-2]
        if n > self.table.shape[2]:
            raise ValueError
        return torch.add(x, self.table[0, 0].narrow(0, 0, n))
