# attention_scores: failed input-changed | attention: failed input-changed | self_attention: failed input-changed
import math

import torch


def attention_scores(q, k):
    k.transpose_(-2, -1)
    return q @ k / math.sqrt(q.shape[-1])


def attention(q, k, v):
    k.resize_(k.shape)
    k.swapaxes_(-1, -2)
    w = torch.softmax(q @ k / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    x.unsqueeze_(0)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
