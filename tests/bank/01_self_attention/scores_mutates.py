# attention_scores: failed input-changed | attention: failed input-changed | self_attention: failed input-changed
import math

import torch


def attention_scores(q, k):
    q /= math.sqrt(q.shape[-1])
    return q @ k.mT


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    out = w @ v
    v.zero_()
    return out, w


def self_attention(x, w_q, w_k, w_v):
    w_q *= w_q.shape[-1] ** -0.5
    w = torch.softmax((x @ w_q) @ (x @ w_k).mT, -1)
    return w @ (x @ w_v), w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
