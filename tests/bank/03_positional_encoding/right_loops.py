# shift_matrix: passed
import math

import torch


def angle(pos, j, d_model):
    i = j // 2
    return pos / 10000 ** (2 * i / d_model)


def positional_encoding(seq_len, d_model):
    rows = []
    for pos in range(seq_len):
        row = []
        for j in range(d_model):
            if j % 2 == 0:
                row.append(math.sin(angle(pos, j, d_model)))
            else:
                row.append(math.cos(angle(pos, j, d_model)))
        rows.append(row)
    return torch.tensor(rows)


def shift_matrix(offset, d_model):
    rows = [[0.0] * d_model for _ in range(d_model)]
    for j in range(0, d_model, 2):
        a = angle(offset, j, d_model)
        rows[j][j] = rows[j + 1][j + 1] = math.cos(a)
        rows[j][j + 1] = math.sin(a)
        rows[j + 1][j] = -math.sin(a)
    return torch.tensor(rows)


class PositionalEncoding(torch.nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("rows", positional_encoding(max_len, d_model))

    def forward(self, x):
        seq = x.shape[-2]
        if seq > self.max_len:
            raise ValueError(f"{seq} > {self.max_len}")
        out = []
        for pos in range(seq):
            out.append(x[..., pos, :] + self.rows[pos])
        return torch.stack(out, dim=-2)
