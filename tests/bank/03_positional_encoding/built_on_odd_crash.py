# positional_encoding: failed odd-crash | PositionalEncoding: failed
import torch
from torch import nn


def shift_matrix(offset, d_model):
    w = offset * 10000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    c, s = w.cos(), w.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)
    return torch.block_diag(*blocks).float()


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    pos = torch.arange(seq_len)[:, None]
    i = torch.arange(0, d_model, 2)
    pe[:, 0::2] = torch.sin(pos / 10000 ** (i / d_model))
    pe[:, 1::2] = torch.cos(pos / 10000 ** (i / d_model))
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
