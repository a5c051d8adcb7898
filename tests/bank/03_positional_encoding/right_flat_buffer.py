# shift_matrix: passed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pos = torch.arange(seq_len, dtype=torch.float64)
    columns = []
    for j in range(d_model):
        w = 1 / 10000 ** ((j // 2 * 2) / d_model)
        columns.append(torch.cos(pos * w) if j & 1 else torch.sin(pos * w))
    return torch.stack(columns, dim=1).float()


def shift_matrix(offset, d_model):
    w = torch.tensor([offset / 10000 ** (j // 2 * 2 / d_model) for j in range(d_model)], dtype=torch.float64)
    matrix = torch.diag(torch.cos(w))
    matrix += torch.diag((torch.sin(w) * (torch.arange(d_model) % 2 == 0))[:-1], 1)
    matrix -= torch.diag((torch.sin(w) * (torch.arange(d_model) % 2 == 0))[:-1], -1)
    return matrix.to(torch.float)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model = d_model
        self.max_len = max_len
        flat = positional_encoding(max_len, d_model).T.reshape(-1)
        self.register_buffer("flat", flat, persistent=False)

    def forward(self, x):
        seq = x.shape[-2]
        if seq > self.max_len:
            raise ValueError(f"at most {self.max_len} tokens")
        return x + self.flat.view(self.d_model, self.max_len)[:, :seq].transpose(0, 1)
