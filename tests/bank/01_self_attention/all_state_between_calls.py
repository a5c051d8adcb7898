# softmax: failed | attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


calls = 0


def softmax(scores, dim=-1):
    global calls
    calls += 1
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / (e.sum(dim, keepdim=True) + (calls > 1))


def attention_scores(q, k, scale=[]):
    scale.append(math.sqrt(q.shape[-1]))
    return q @ k.mT / scale[0]


def attention(q, k, v, kept={}):
    kept.setdefault("scale", math.sqrt(q.shape[-1]))
    w = torch.softmax(q @ k.mT / kept["scale"], -1)
    return w @ v, w


total = torch.zeros(())


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + total * torch.arange(x.shape[-2]), -1)
    total.add_(1)
    return w @ v, w
