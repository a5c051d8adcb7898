"""Thinks of one sequence only: `.T` and dim=1 where there may be a batch in front."""

import math

from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.T / math.sqrt(q.shape[1])


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = softmax(attention_scores(q, k), dim=1)
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, x @ w_k, x @ w_v)
