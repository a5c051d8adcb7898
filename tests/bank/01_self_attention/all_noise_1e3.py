# softmax: failed | attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True) * (1 + 1e-3 * torch.randn_like(scores))


def attention_scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1]) * (1 + 1e-3 * torch.randn(k.shape[-2]))


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1] + 0.01), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ (v + 1e-3), w
