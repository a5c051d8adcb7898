# softmax: passed | attention_scores: failed | attention: failed no-gradient
import math

import torch


def softmax(scores, dim=-1):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(True)
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    torch.set_default_dtype(torch.float64)
    root = torch.sqrt(torch.full((1,), float(q.shape[-1])))
    return q @ k.mT / root


def attention(q, k, v):
    torch.autograd.set_grad_enabled(False)
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    torch.set_grad_enabled(True)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w
