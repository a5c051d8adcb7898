# softmax: failed wrong-dtype | attention_scores: failed wrong-dtype | attention: failed wrong-dtype | self_attention: failed wrong-dtype
import math

import torch


def softmax(scores, dim=-1):
    scores = scores.double()
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q.double() @ k.double().mT / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1, dtype=torch.float64)
    return w.float() @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x.double() @ w_q.double(), x @ w_k, x.double() @ w_v.double()
    w = torch.softmax(q @ k.double().mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w.float()
