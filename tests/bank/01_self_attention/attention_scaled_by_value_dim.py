# attention: failed scaled-by-value-dim | self_attention: failed scaled-by-value-dim
import math

import torch


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(v.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
