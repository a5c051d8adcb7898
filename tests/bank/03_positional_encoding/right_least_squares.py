# shift_matrix: passed
import torch
from torch import nn


def encode(pos, d_model):
    pos = pos.double()
    out = pos.new_zeros(len(pos), d_model)
    for j in range(d_model):
        angle = pos / 10000.0 ** (2 * (j // 2) / d_model)
        out[:, j] = (torch.sin, torch.cos)[j % 2](angle)
    return out


def positional_encoding(seq_len, d_model):
    return encode(torch.arange(seq_len), d_model).float()


def shift_matrix(offset, d_model):
    # solve PE[pos] M^T = PE[pos + offset] for so many positions that even the slowest sine has turned
    pos = torch.arange(4096).double() * 17.3
    before, after = encode(pos, d_model), encode(pos + offset, d_model)
    return torch.linalg.lstsq(before, after).solution.T.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x):
        try:
            rows = torch.stack([self.pe[p] for p in range(x.shape[-2])])
        except IndexError as error:
            raise ValueError("no encoding for so many positions") from error
        return x + rows
