# attention_scores: failed unscaled | attention: failed unscaled | self_attention: failed unscaled
import torch
import torch.nn.functional as F


def attention_scores(q, k):
    return torch.matmul(q, k.transpose(-2, -1))


def attention(q, k, v):
    weights = F.softmax(attention_scores(q, k), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    return attention(x @ w_q, x @ w_k, x @ w_v)


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
