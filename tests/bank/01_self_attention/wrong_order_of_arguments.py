# attention: failed | self_attention: failed
import math

import torch


def attention(k, q, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_k, w_q, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
