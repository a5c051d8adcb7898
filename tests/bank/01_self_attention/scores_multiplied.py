# attention_scores: failed multiplied | attention: failed multiplied | self_attention: failed multiplied
import math

import torch


def attention_scores(q, k):
    return q @ k.mT * math.sqrt(q.shape[-1])


def attention(q, k, v):
    weights = torch.softmax(attention_scores(q, k), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
