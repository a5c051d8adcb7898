# attention_scores: failed no-batch | attention: failed no-batch | self_attention: failed no-batch
import math

import torch


def attention_scores(q, k):
    return torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), dim=-1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    batch, seq, d_model = x.shape
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
