# attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


def swapped(k):
    return k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])


def attention_scores(q, k):
    return q @ swapped(k) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(q @ swapped(k) / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
