"""Forgets the scale, in the scores and so in all that is built on them."""

from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    exponentials = (scores - scores.max(dim, keepdim=True).values).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1)


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = softmax(attention_scores(q, k))
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, x @ w_k, x @ w_v)
