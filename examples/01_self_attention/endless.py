"""Loops without end in one exercise; the others stand on their own."""

import math

import torch
from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    result = torch.zeros(*q.shape[:-1], k.shape[-2])
    row = 0
    while row < q.shape[-2]:
        result[..., row, :] = (k @ q[..., row, :, None])[..., 0] / math.sqrt(q.shape[-1])
    return result


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, x @ w_k, x @ w_v)
