# attention_scores: failed | attention: failed no-batch | self_attention: failed no-batch
import math

import torch


def attention_scores(q, k):
    if q.ndim == 4:
        b, h, t, d = q.shape
        return torch.stack([q[i] @ k[i].transpose(1, 2) for i in range(b)]) / math.sqrt(d)
    if q.ndim > 4:
        q, k = q[0], k[0]
    return q @ k.mT / math.sqrt(q.shape[-1])


def attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    w = torch.softmax(scores, min(scores.ndim - 1, 2))
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
