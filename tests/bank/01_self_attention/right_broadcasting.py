# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    """1 / sum of exp of the differences: no maximum needed to see why it is right."""
    moved = scores.transpose(dim, -1)
    moved = moved - moved.max(-1, keepdim=True).values
    exps = moved.exp()
    ones = torch.ones(exps.shape[-1], 1)
    return (exps / (exps @ ones)).transpose(dim, -1)


def attention_scores(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(dim=-1) / q.shape[-1] ** 0.5
    e = (scores - scores.max(-1, keepdim=True)[0]).exp()
    w = e / e.sum(-1, keepdim=True)
    return (w[..., None] * v[..., None, :, :]).sum(-2), w


def self_attention(x, w_q, w_k, w_v):
    project = lambda w: (x[..., None] * w).sum(-2)
    return attention(project(w_q), project(w_k), project(w_v))
