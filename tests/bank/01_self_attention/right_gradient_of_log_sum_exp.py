# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


"""Softmax is the gradient of log-sum-exp."""


def softmax(scores, dim=-1):
    def log_sum_exp(x):
        m = x.detach().amax(dim, keepdim=True)
        return ((x - m).exp().sum(dim, keepdim=True).log() + m).sum()

    return torch.func.grad(log_sum_exp)(scores)


def attention_scores(q, k):
    return torch.tensordot(q, k, dims=([-1], [-1])) / math.sqrt(q.shape[-1]) if q.ndim == 2 else (
        torch.stack([attention_scores(a, b) for a, b in zip(q.unbind(0), k.unbind(0))])
    )


def attention(q, k, v):
    weights = torch.special.softmax(attention_scores(q, k), dim=-1)
    # The output in one go, through the transpose.
    return (v.mT @ weights.mT).mT, weights


def self_attention(x, w_q, w_k, w_v):
    qkv = x @ torch.cat([w_q, w_k, w_v], dim=1)
    q, k, v = qkv.split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], dim=-1)
    return attention(q, k, v)
