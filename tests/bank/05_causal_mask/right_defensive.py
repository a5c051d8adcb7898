# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math
from typing import Optional, Tuple, Union

import torch
from torch import Tensor, nn


def causal_mask(seq_len: int) -> Tensor:
    if not isinstance(seq_len, int) or isinstance(seq_len, bool):
        raise TypeError("seq_len must be an int")
    if seq_len < 1:
        raise ValueError("seq_len must be at least 1")
    mask = torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool))
    assert mask.diagonal().all() and mask.shape == (seq_len, seq_len)
    return mask


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype is not torch.bool:
        raise TypeError(f"mask must be bool, not {mask.dtype}")
    if torch.broadcast_shapes(scores.shape, mask.shape) != scores.shape:
        raise ValueError("mask does not fit")
    masked: Tensor = scores.masked_fill(~mask, -math.inf)
    assert masked.shape == scores.shape
    return masked


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, causal: bool = False) -> None:
        super().__init__()
        if d_model < 1 or n_heads < 1:
            raise ValueError("sizes are at least 1")
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.d_model: int = d_model
        self.n_heads: int = n_heads
        self.d_head: int = d_model // n_heads
        self.causal: bool = bool(causal)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, need_weights: bool = False) -> Union[Tensor, Tuple[Tensor, Tensor]]:
        if x.dim() < 2:
            raise ValueError("x must have a sequence and a feature dimension")
        if x.shape[-1] != self.d_model:
            raise ValueError(f"expected {self.d_model} features, got {x.shape[-1]}")
        if x.dtype != self.qkv.weight.dtype:
            x = x.to(self.qkv.weight.dtype)
        leading, seq = x.shape[:-2], x.shape[-2]
        mask: Optional[Tensor] = causal_mask(seq) if self.causal else None

        q, k, v = torch.split(self.qkv(x), [self.d_model] * 3, dim=-1)
        heads = []
        for part in (q, k, v):
            part = part.reshape(*leading, seq, self.n_heads, self.d_head)
            heads.append(part.transpose(-3, -2))
        q, k, v = heads
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_head)
        assert scores.shape == (*leading, self.n_heads, seq, seq)
        if mask is not None:
            scores = mask_scores(scores, mask)
        weights = torch.softmax(scores, dim=-1)
        assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-4)
        output = self.out_proj(torch.matmul(weights, v).transpose(-3, -2).reshape(*leading, seq, self.d_model))
        if need_weights:
            return output, weights
        return output


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, causal: bool = False) -> None:
        super().__init__()
        if d_ff < 1:
            raise ValueError("d_ff must be at least 1")
        self.attn = MultiHeadAttention(d_model=d_model, n_heads=n_heads, causal=causal)
        self.norm1 = nn.LayerNorm(normalized_shape=d_model)
        self.norm2 = nn.LayerNorm(normalized_shape=d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x: Tensor) -> Tensor:
        attended = self.attn(x=x, need_weights=False)
        assert isinstance(attended, Tensor)
        x = self.norm1(x + attended)
        x = self.norm2(x + self.ff(x))
        return x
