# attention: failed unscaled/unstable | self_attention: failed unscaled/unstable
import math

import torch


def exp_sum(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)


def attention(q, k, v):
    w = exp_sum(q @ k.mT)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
