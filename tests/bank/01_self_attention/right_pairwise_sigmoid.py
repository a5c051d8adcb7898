# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    """Each probability as 1 / sum of exp(other - own), overflow included: 1 / inf is 0."""
    x = scores.movedim(dim, -1)
    dead = x == -math.inf
    x = torch.where(dead, torch.finfo(x.dtype).min / 4, x)
    differences = (x.unsqueeze(-2) - x.unsqueeze(-1)).clamp(max=88.0)
    p = 1 / differences.exp().sum(-1)
    p = torch.where((x.amax(-1, keepdim=True) - x > 80) | dead, torch.zeros(()), p)
    return p.movedim(-1, dim)


def attention_scores(q, k):
    # |a - b|² = |a|² - 2ab + |b|²
    squares = lambda x: (x.double() ** 2).sum(-1)
    distance = ((q.double()[..., :, None, :] - k.double()[..., None, :, :]) ** 2).sum(-1)
    dots = (squares(q)[..., :, None] + squares(k)[..., None, :] - distance) / 2
    return (dots / math.sqrt(q.shape[-1])).float()


def attention(q, k, v):
    scores = attention_scores(q, k)
    first = scores - scores.max(dim=-1, keepdim=True).values
    weights = first.exp() / first.exp().sum(dim=-1, keepdim=True)
    mixed = torch.cat([weights @ v, weights], dim=-1)
    return mixed[..., : v.shape[-1]], mixed[..., v.shape[-1] :]


def self_attention(x, w_q, w_k, w_v):
    stacked = [torch.nn.functional.linear(x, w.t().contiguous()) for w in (w_q, w_k, w_v)]
    return attention(*stacked)
