# attention_scores: failed scaled-by-d | attention: failed scaled-by-d | self_attention: failed scaled-by-d
import torch


def attention_scores(q, k):
    return q @ k.mT / (q.shape[-1] ** 1 / 2)


def attention(q, k, v):
    weights = torch.softmax(attention_scores(q, k), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
