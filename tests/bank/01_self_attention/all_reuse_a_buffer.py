# softmax: failed result-changed | attention_scores: failed result-changed
import math

import torch


buffers = {}


def buffer(name, like):
    key = (name, tuple(like.shape))
    if key not in buffers:
        buffers[key] = torch.empty(like.shape)
    return buffers[key]


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    result = e / e.sum(dim, keepdim=True)
    out = buffer("softmax", result)
    if scores.requires_grad:
        return result
    return out.copy_(result)


def attention_scores(q, k):
    result = q @ k.mT / math.sqrt(q.shape[-1])
    if result.requires_grad:
        return result
    out = buffer("scores", result)
    out[:] = result
    return out


def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
