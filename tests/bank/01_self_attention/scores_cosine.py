# attention_scores: failed | attention: failed
import math

import torch
import torch.nn.functional as F


def attention_scores(q, k):
    return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT


def attention(q, k, v):
    w = torch.softmax(attention_scores(q, k), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
