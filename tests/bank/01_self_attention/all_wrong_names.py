# softmax: failed raised | attention_scores: failed raised | attention: failed raised | self_attention: failed raised
import math

import torch


def softmax(x, axis=-1):
    e = torch.exp(x - x.amax(axis, keepdim=True))
    return e / e.sum(axis, keepdim=True)


def attention_scores(queries, keys):
    return queries @ keys.mT / math.sqrt(queries.shape[-1])


def attention(q, k, value):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ value, w


def self_attention(x, wq, wk, wv):
    q, k, v = x @ wq, x @ wk, x @ wv
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w
