# attention_scores: failed no-batch/raised | attention: failed
import math

import torch


def attention_scores(q, k):
    q, k = q.squeeze(0), k.squeeze(0)
    return (q @ k.T / math.sqrt(q.shape[-1])).unsqueeze(0)


def attention(q, k, v):
    q, k, v = q[0], k[0], v[0]
    w = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), -1)
    return (w @ v)[None], w[None]


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
