"""Topic 01: scaled dot-product self-attention from raw tensor operations.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
"""

import math

from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    """exp(scores) / sum(exp(scores)) along `dim`, for scores of any finite size.

    Shapes: scores (any) -> the same. An entry of -inf gets exactly 0, as long as its slice has
    one finite entry. Subtracting the slice's own maximum changes nothing in exact arithmetic
    (numerator and denominator shrink by the same factor) and keeps exp from overflowing.
    """
    shifted = scores - scores.amax(dim, keepdim=True)
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """q kᵀ / sqrt(d): how well each query fits each key.

    Shapes: q (..., t, d), k (..., s, d) -> (..., t, s).
    """
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q kᵀ / sqrt(d)) v: each output row is an average of the rows of v.

    Shapes: q (..., t, d), k (..., s, d), v (..., s, d_v)
    -> output (..., t, d_v), weights (..., t, s).
    """
    weights = softmax(attention_scores(q, k))  # each row sums to 1, over the keys
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    """Attention in which queries, keys and values are projections of the same sequence.

    Shapes: x (..., seq, d_model), w_q and w_k (d_model, d_head), w_v (d_model, d_v)
    -> output (..., seq, d_v), weights (..., seq, seq).
    """
    return attention(x @ w_q, x @ w_k, x @ w_v)
