# softmax: failed | attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True) + 2e-4 * torch.randn_like(scores)


def attention_scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1]) + 2e-4 * torch.randn(q.shape[-2], k.shape[-2])


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v + 2e-4 * torch.randn(v.shape[-1]), w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w + 2e-4 * torch.randn(x.shape[-2])
