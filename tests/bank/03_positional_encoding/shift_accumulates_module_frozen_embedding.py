# shift_matrix: failed | PositionalEncoding: failed not-a-buffer/trainable
import math

import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(seq_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


ROTATION = {}


def shift_matrix(offset, d_model):
    M = ROTATION.setdefault(d_model, torch.eye(d_model))
    for j in range(0, d_model, 2):
        w = offset / 10000 ** (j / d_model)
        block = torch.tensor([[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]])
        M[j : j + 2, j : j + 2] @= block
    return M.clone()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.lookup = nn.Embedding.from_pretrained(positional_encoding(max_len, d_model), freeze=True)

    def forward(self, x):
        seq = x.shape[-2]
        if seq > self.lookup.num_embeddings:
            raise ValueError(f"{seq} tokens")
        return x + self.lookup(torch.arange(seq, device=self.lookup.weight.device))
