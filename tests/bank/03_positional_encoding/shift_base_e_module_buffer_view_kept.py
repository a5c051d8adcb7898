# shift_matrix: failed wrong-base | PositionalEncoding: failed not-a-buffer
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq_len)[:, None] / 10000 ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def shift_matrix(offset, d_model):
    M = torch.eye(d_model)
    for j in range(0, d_model, 2):
        w = torch.exp(torch.tensor(-j / d_model)) * offset
        M[j : j + 2, j : j + 2] = torch.tensor([[w.cos(), w.sin()], [-w.sin(), w.cos()]])
    return M


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model).unsqueeze(0))
        self.rows = self.pe[0]  # without the batch dimension

    def forward(self, x):
        if x.shape[-2] > self.rows.shape[0]:
            raise ValueError("too long")
        return x + self.rows[: x.shape[-2]]
