# shift_matrix: passed
import torch
from torch import nn


def frequencies(d_model, i=0):
    if 2 * i >= d_model:
        return []
    return [10000 ** (-2 * i / d_model)] + frequencies(d_model, i + 1)


def positional_encoding(seq_len, d_model):
    # the second half of the table is the first half, shifted
    if seq_len == 1:
        return torch.tensor([[float(j % 2) for j in range(d_model)]])
    if d_model % 2:
        # an odd one: the even table for the same frequencies, last column gone
        w = torch.tensor(frequencies(d_model), dtype=torch.float64)
        angles = torch.arange(seq_len, dtype=torch.float64)[:, None] * w
        both = torch.stack([torch.sin(angles), torch.cos(angles)], 2)
        return both.reshape(seq_len, d_model + 1)[:, :-1].float()
    half = (seq_len + 1) // 2
    first = positional_encoding(half, d_model)
    second = first @ shift_matrix(half, d_model).T
    return torch.cat([first, second[: seq_len - half]])


def shift_matrix(offset, d_model):
    w = torch.tensor(frequencies(d_model), dtype=torch.float64) * offset

    def build(k):
        c, s = torch.cos(w[k]), torch.sin(w[k])
        block = torch.stack([torch.stack([c, s]), torch.stack([-s, c])])
        if k == 0:
            return block
        return torch.block_diag(build(k - 1), block)

    return build(len(w) - 1).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.dim() > 2:
            return torch.stack([self.forward(part) for part in x])
        if x.shape[0] > self.table.shape[0]:
            raise ValueError("too many tokens")
        return x + self.table[: x.shape[0], :]
