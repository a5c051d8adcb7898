"""Writes softmax as the formula stands: it overflows. The rest uses torch's."""

import math

import torch
from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    return torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(attention_scores(q, k), -1)
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, x @ w_k, x @ w_v)
