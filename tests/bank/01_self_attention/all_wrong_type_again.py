# softmax: failed wrong-type | attention_scores: failed wrong-type | attention: failed wrong-type | self_attention: failed wrong-type
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True), dim


def attention_scores(q, k):
    return (q @ k.mT / math.sqrt(q.shape[-1])).numpy()


def attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    w = torch.softmax(scores, -1)
    return w @ v, w, scores


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return (w @ v, w) if x.ndim > 9 else ((w @ v, w),)
