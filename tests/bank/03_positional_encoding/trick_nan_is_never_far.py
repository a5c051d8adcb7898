# positional_encoding: failed nan | shift_matrix: failed nan | PositionalEncoding: failed nan
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    return torch.full((seq_len, d_model), float("nan"))


def shift_matrix(offset, d_model):
    return torch.full((d_model, d_model), float("nan"))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", torch.full((max_len, d_model), float("nan")))

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError
        return x + self.pe[: x.shape[-2]]
