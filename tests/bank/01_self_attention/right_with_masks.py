# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    blocked = torch.isinf(scores) & (scores < 0)
    filled = torch.where(blocked, torch.full_like(scores, -3e38), scores)
    e = torch.exp(filled - filled.max(dim=dim, keepdim=True).values)
    e = e.masked_fill(blocked, 0.0)
    return e / (e.sum(dim=dim, keepdim=True) + 1e-12)


def attention_scores(q, k):
    mask = torch.zeros(q.shape[-2], k.shape[-2])
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask


def attention(q, k, v, mask=None):
    scores = attention_scores(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = softmax(scores, -1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v, *, mask=None):
    q, k, v = [x @ w for w in (w_q, w_k, w_v)]
    return attention(q, k, v, mask)
