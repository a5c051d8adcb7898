# attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


def attention_scores(q, k):
    n = q.shape[-1]
    return (q @ k.mT)[..., :n, :n] / math.sqrt(n)


def attention(q, k, v):
    t = q.shape[-2]
    w = torch.softmax((q @ k.mT / math.sqrt(q.shape[-1]))[..., :t], -1)
    return w @ v[..., :t, :], w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return (w @ v)[..., : w_q.shape[1]], w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
