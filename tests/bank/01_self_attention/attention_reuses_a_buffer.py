# attention: failed result-changed | self_attention: failed result-changed
import math

import torch


out = torch.zeros(10000)


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    result = w @ v
    if result.requires_grad:
        return result, w
    place = out[: result.numel()].view(result.shape)
    place.copy_(result)
    return place, w


weights = torch.zeros(10000)


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    if w.requires_grad:
        return w @ v, w
    place = weights[: w.numel()].view(w.shape)
    place.copy_(w)
    return w @ v, place


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
