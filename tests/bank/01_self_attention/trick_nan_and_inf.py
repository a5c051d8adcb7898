# softmax: failed | attention_scores: failed | attention: failed | self_attention: failed
import math

import torch


def softmax(scores, dim=-1):
    return torch.full_like(scores, math.nan)


def attention_scores(q, k):
    return torch.full((*q.shape[:-1], k.shape[-2]), math.inf) + 0 * (q @ k.mT)


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return (w @ v) / 0, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v * math.nan, w
