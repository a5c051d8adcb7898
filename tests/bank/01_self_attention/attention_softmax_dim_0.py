# attention: failed softmax-over-queries | self_attention: failed softmax-over-queries
import math

import torch
import torch.nn.functional as F


def attention(q, k, v):
    w = F.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=0)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(0)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
