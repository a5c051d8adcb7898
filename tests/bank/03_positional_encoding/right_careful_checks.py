# shift_matrix: passed
import math

import torch
from torch import Tensor, nn


class SequenceTooLong(ValueError):
    """More tokens than there are encodings for."""


def _check_size(name: str, value: int) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    """Sinusoidal encodings.

    Parameters
    ----------
    seq_len : int
        The number of positions.
    d_model : int
        The number of features; may be odd.

    Returns
    -------
    Tensor of shape (seq_len, d_model)
    """
    _check_size("seq_len", seq_len)
    _check_size("d_model", d_model)
    n_sin = math.ceil(d_model / 2)
    n_cos = d_model // 2
    assert n_sin + n_cos == d_model
    pos = torch.arange(seq_len, dtype=torch.float32)
    table = torch.full((seq_len, d_model), float("nan"))
    for i in range(n_sin):
        table[:, 2 * i] = torch.sin(pos / (10000 ** (2 * i / d_model)))
    for i in range(n_cos):
        table[:, 2 * i + 1] = torch.cos(pos / (10000 ** (2 * i / d_model)))
    assert not torch.isnan(table).any()
    return table


def shift_matrix(offset: int, d_model: int) -> Tensor:
    """A rotation of each pair of features by offset * frequency."""
    _check_size("d_model", d_model)
    if d_model % 2 != 0:
        raise ValueError("shift_matrix needs an even d_model")
    if offset == 0:
        return torch.eye(d_model)
    if offset < 0:
        # going back is the inverse, and the inverse of a rotation is its transpose
        return shift_matrix(-offset, d_model).T.contiguous()
    matrix = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        theta = offset / (10000 ** (2 * i / d_model))
        matrix[2 * i, 2 * i] = math.cos(theta)
        matrix[2 * i, 2 * i + 1] = math.sin(theta)
        matrix[2 * i + 1, 2 * i] = -math.sin(theta)
        matrix[2 * i + 1, 2 * i + 1] = math.cos(theta)
    return matrix


class PositionalEncoding(nn.Module):
    """Adds the encodings to the embeddings."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        _check_size("d_model", d_model)
        _check_size("max_len", max_len)
        self.d_model = d_model
        self.max_len = max_len
        self.register_buffer("pe", positional_encoding(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() < 2:
            raise ValueError("x must have at least two dimensions")
        if x.shape[-1] != self.d_model:
            raise ValueError(f"expected {self.d_model} features, got {x.shape[-1]}")
        if x.shape[-2] > self.max_len:
            raise SequenceTooLong(f"{x.shape[-2]} tokens, max_len is {self.max_len}")
        return x + self.pe[: x.shape[-2]]

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, max_len={self.max_len}"
