# PositionalEncoding: failed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.table = positional_encoding(max_len, d_model)

    def named_buffers(self, *args, **kwargs):
        yield "table", self.table

    def buffers(self, recurse=True):
        yield self.table

    def state_dict(self, *args, **kwargs):
        return {"table": self.table}

    def forward(self, x):
        if x.shape[-2] > self.table.shape[0]:
            raise ValueError("too long")
        return x + self.table[: x.shape[-2]]
