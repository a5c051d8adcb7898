# attention: failed raw-scores | self_attention: failed raw-scores
import math

import torch


def attention(q, k, v):
    scores = q @ k.mT
    return torch.softmax(scores / math.sqrt(q.shape[-1]), -1) @ v, scores


def self_attention(x, w_q, w_k, w_v):
    scores = (x @ w_q) @ (x @ w_k).mT
    return torch.softmax(scores, -1) @ (x @ w_v), scores


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
