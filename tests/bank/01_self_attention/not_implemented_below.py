# softmax: missing not-implemented | attention: failed raised | self_attention: failed raised
import math


def softmax(scores, dim=-1):
    raise NotImplementedError


def attention(q, k, v):
    w = softmax(q @ k.mT / math.sqrt(q.shape[-1]))
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
