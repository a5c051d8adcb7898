# softmax: failed unstable | attention: failed unstable | self_attention: failed unstable
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores)
    return e / e.sum(dim=dim, keepdim=True)


def attention(q, k, v):
    w = softmax(q @ k.mT / math.sqrt(q.shape[-1]))
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
