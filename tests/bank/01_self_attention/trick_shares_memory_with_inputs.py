# softmax: failed input-changed | attention_scores: failed | attention: failed
import math

import torch


def softmax(scores, dim=-1):
    p = torch.exp(scores - scores.amax(dim, keepdim=True))
    with torch.no_grad():
        scores.copy_(p / p.sum(dim, keepdim=True))
    return scores


def attention_scores(q, k):
    return q


def attention(q, k, v):
    return v, k


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
