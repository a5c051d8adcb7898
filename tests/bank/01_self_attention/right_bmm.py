# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    top, _ = scores.sort(dim=dim, descending=True)
    exps = torch.exp(scores - top.select(dim, 0).unsqueeze(dim))
    return exps.div(exps.sum(dim).unsqueeze(dim))


def as_batch(x):
    return x.reshape(-1, *x.shape[-2:])


def attention_scores(q, k):
    scores = torch.bmm(as_batch(q), as_batch(k).permute(0, 2, 1))
    return scores.view(*q.shape[:-1], k.shape[-2]) * q.shape[-1] ** -0.5


def attention(q, k, v):
    batch_q, batch_k, batch_v = as_batch(q), as_batch(k), as_batch(v)
    zeros = torch.zeros(batch_q.shape[0], batch_q.shape[1], batch_k.shape[1])
    scores = torch.baddbmm(zeros, batch_q, batch_k.mT, beta=0, alpha=1 / math.sqrt(q.shape[-1]))
    weights = torch.nn.Softmax(dim=2)(scores)
    out = torch.bmm(weights, batch_v)
    return out.view(*q.shape[:-1], v.shape[-1]), weights.view(*q.shape[:-1], k.shape[-2])


def self_attention(x, w_q, w_k, w_v):
    flat = x.reshape(-1, x.shape[-1])
    q, k, v = (torch.mm(flat, w).view(*x.shape[:-1], -1) for w in (w_q, w_k, w_v))
    return attention(q, k, v)
