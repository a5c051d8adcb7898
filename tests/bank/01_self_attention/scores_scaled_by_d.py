# attention_scores: failed scaled-by-d | attention: failed scaled-by-d | self_attention: failed scaled-by-d
import torch
import torch.nn.functional as F


def attention_scores(q, k):
    return q @ k.mT / q.shape[-1]


def attention(q, k, v):
    weights = F.softmax(q @ k.mT / k.size(-1), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / w_q.shape[1], dim=-1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
