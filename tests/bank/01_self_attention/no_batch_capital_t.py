# attention_scores: failed no-batch | attention: failed no-batch | self_attention: failed no-batch
import math

import torch
import torch.nn.functional as F


def attention_scores(q, k):
    return q @ k.T / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = F.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
