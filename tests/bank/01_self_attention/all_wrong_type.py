# softmax: failed wrong-type | attention_scores: failed wrong-type | attention: failed wrong-type | self_attention: failed wrong-type
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    p = e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return (q @ k.mT / math.sqrt(q.shape[-1])).tolist()


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return {"output": w @ v, "weights": w}
