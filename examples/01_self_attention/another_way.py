"""Right in another way: log-sum-exp by hand, einsum, loops over the batch."""

import math

import torch
from torch import Tensor


def softmax(scores: Tensor, dim: int = -1) -> Tensor:
    biggest, _ = torch.max(scores.double(), dim=dim, keepdim=True)
    log_total = biggest + (scores - biggest).exp().sum(dim=dim, keepdim=True).log()
    return (scores - log_total).exp().to(scores.dtype)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    scaled = q * q.size(-1) ** -0.5
    return torch.einsum("...td,...sd->...ts", scaled, k)


def attention(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    if q.dim() > 2:
        pairs = [attention(q[i], k[i], v[i]) for i in range(len(q))]
        return [torch.stack(column) for column in zip(*pairs, strict=True)]
    rows = [torch.softmax(k @ query / math.sqrt(len(query)), 0) for query in q]
    weights = torch.stack(rows)
    return [weights.mm(v), weights]


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    queries, keys, values = (torch.matmul(x, w) for w in (w_q, w_k, w_v))
    weights = (queries @ keys.mT).div(math.sqrt(w_q.shape[1])).softmax(-1)
    return weights @ values, weights
