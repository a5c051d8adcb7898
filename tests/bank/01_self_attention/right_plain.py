# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - torch.max(scores, dim=dim, keepdim=True)[0])
    return e / torch.sum(e, dim=dim, keepdim=True)


def attention_scores(q, k):
    d = q.size(-1)
    return torch.matmul(q, k.transpose(-1, -2)) / d**0.5


def attention(q, k, v):
    weights = softmax(attention_scores(q, k))
    output = torch.matmul(weights, v)
    return output, weights


def self_attention(x, w_q, w_k, w_v):
    q = torch.matmul(x, w_q)
    k = torch.matmul(x, w_k)
    v = torch.matmul(x, w_v)
    return attention(q, k, v)
