# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch.nn.functional as F


def softmax(scores, dim=-1):
    top = scores.topk(1, dim=dim).values
    e = 2 ** ((scores - top) * math.log2(math.e))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return (k @ q.mT).mT.div(math.sqrt(q.shape[-1]))


def attention(q, k, v):
    weights = F.softmax(attention_scores(q, k), dim=-1)
    return [weights @ v, weights]


def self_attention(x, w_q, w_k, w_v):
    return list(attention(x @ w_q, x @ w_k, x @ w_v))
