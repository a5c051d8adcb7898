# softmax: failed no-gradient | attention_scores: failed no-gradient | attention: failed no-gradient | self_attention: failed no-gradient
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True).detach()


def attention_scores(q, k):
    return q @ k.detach().mT / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w.detach()


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w.detach() @ v, w
