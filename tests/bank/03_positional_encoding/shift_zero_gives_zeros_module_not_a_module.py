# shift_matrix: failed | PositionalEncoding: failed
import math

import torch


def positional_encoding(seq_len, d_model):
    table = torch.empty(seq_len, d_model)
    for j in range(d_model):
        angle = torch.arange(seq_len) / 10000 ** ((j - j % 2) / d_model)
        table[:, j] = torch.cos(angle) if j % 2 else torch.sin(angle)
    return table


def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    if not offset:
        return M  # nothing to shift
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        M[j, j] = M[j + 1, j + 1] = math.cos(w)
        M[j, j + 1] = math.sin(w)
        M[j + 1, j] = -math.sin(w)
    return M


class PositionalEncoding:
    def __init__(self, d_model, max_len):
        self.pe = positional_encoding(max_len, d_model)

    def __call__(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            raise ValueError("too long")
        return x + self.pe[: x.shape[-2]]
