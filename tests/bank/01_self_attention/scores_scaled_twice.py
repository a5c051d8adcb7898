# attention_scores: failed scaled-by-d | attention: failed scaled-by-d
import math

import torch


def attention_scores(q, k):
    return (q / math.sqrt(q.shape[-1])) @ (k / math.sqrt(k.shape[-1])).mT


def attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1]) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
