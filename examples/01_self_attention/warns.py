"""Right, and noisy: text on stderr in cells and in answers costs nothing."""

import math
import sys
import warnings

import torch
from torch import Tensor

warnings.warn("this module is experimental", stacklevel=1)
print("loaded on", torch.get_default_dtype(), file=sys.stderr)


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    print("softmax of", tuple(scores.shape), file=sys.stderr)
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    warnings.warn("scores are scaled", stacklevel=1)
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    weights = softmax(attention_scores(q, k))
    return weights @ v, weights


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    return attention(x @ w_q, x @ w_k, x @ w_v)
