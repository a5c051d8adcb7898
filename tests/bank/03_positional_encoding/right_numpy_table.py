# shift_matrix: passed
import numpy as np
import torch
from torch import nn


def get_angles(pos, i, d_model):
    angle_rates = 1 / np.power(10000, (2 * (i // 2)) / np.float64(d_model))
    return pos * angle_rates


def positional_encoding(seq_len, d_model):
    angle_rads = get_angles(np.arange(seq_len)[:, np.newaxis], np.arange(d_model)[np.newaxis, :], d_model)
    # apply sin to even indices in the array; 2i
    angle_rads[:, 0::2] = np.sin(angle_rads[:, 0::2])
    # apply cos to odd indices in the array; 2i+1
    angle_rads[:, 1::2] = np.cos(angle_rads[:, 1::2])
    return torch.from_numpy(angle_rads.astype(np.float32))


def shift_matrix(offset, d_model):
    M = np.zeros((d_model, d_model), dtype=np.float32)
    for i in range(0, d_model, 2):
        w = get_angles(offset, i, d_model)
        M[i : i + 2, i : i + 2] = [[np.cos(w), np.sin(w)], [-np.sin(w), np.cos(w)]]
    return torch.tensor(M)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("pos_encoding", positional_encoding(max_len, d_model).reshape(1, max_len, d_model))

    def forward(self, x):
        seq_len = x.shape[-2]
        if seq_len > self.pos_encoding.shape[1]:
            raise ValueError("Sequence length exceeds max_len")
        return x + self.pos_encoding[:, :seq_len, :].squeeze(0)
