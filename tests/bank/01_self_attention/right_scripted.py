# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import functools
import math

import torch


@torch.jit.script
def _softmax(scores: torch.Tensor, dim: int):
    e = torch.exp(scores - torch.amax(scores, dim, True))
    return e / e.sum(dim, True)


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    return _softmax(scores, dim)


@torch.jit.script
def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
    weights = torch.ops.aten.softmax.int(attention_scores(q, k), -1)
    return torch.ops.aten.matmul(weights, v), weights


@functools.lru_cache
def root(n: int) -> float:
    return math.sqrt(n)


def self_attention(x, w_q, w_k, w_v):
    q, k, v = map(x.__matmul__, (w_q, w_k, w_v))
    w = torch.softmax(q.matmul(k.transpose(-1, -2)).div(root(q.shape[-1])), dim=-1)
    return w.matmul(v), w
