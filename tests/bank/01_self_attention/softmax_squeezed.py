# softmax: failed wrong-shape | attention_scores: failed wrong-shape | attention: failed wrong-shape | self_attention: failed wrong-shape
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return (e / e.sum(dim, keepdim=True)).squeeze()


def attention_scores(q, k):
    return (q @ k.mT / math.sqrt(q.shape[-1])).squeeze()


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return (w @ v).squeeze(), w.squeeze()


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w.squeeze(0)
