# shift_matrix: passed
import torch
import torch.nn.functional as F
from torch import nn


def positional_encoding(seq_len, d_model):
    positions = torch.arange(seq_len, dtype=torch.float64).reshape(-1, 1)
    evens = torch.arange(0, d_model, 2, dtype=torch.float64).reshape(1, -1)
    odds = torch.arange(1, d_model, 2, dtype=torch.float64).reshape(1, -1)
    pe = torch.zeros(seq_len, d_model, dtype=torch.float64)
    pe[:, 0::2] = torch.sin(positions / torch.pow(10000.0, evens / d_model))
    pe[:, 1::2] = torch.cos(positions / torch.pow(10000.0, (odds - 1) / d_model))
    return pe.to(dtype=torch.float32)


def shift_matrix(offset, d_model):
    evens = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = offset / torch.pow(10000.0, evens / d_model)
    blocks = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], dim=-1)
    full = torch.diag_embed(blocks.T).view(2, 2, d_model // 2, d_model // 2)
    return full.permute(2, 0, 3, 1).reshape(d_model, d_model).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("weight", positional_encoding(max_len, d_model))
        self.register_buffer("positions", torch.arange(max_len), persistent=False)

    def forward(self, x):
        if x.shape[-2] > self.positions.numel():
            raise ValueError("x has more positions than max_len")
        return x + F.embedding(self.positions[: x.shape[-2]], self.weight)
