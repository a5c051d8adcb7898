# attention_scores: failed unscaled/no-batch | attention: failed unscaled/no-batch | self_attention: failed unscaled/no-batch
import torch


def attention_scores(q, k):
    return q @ k.T


def attention(q, k, v):
    w = torch.softmax(torch.bmm(q, k.mT), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(torch.einsum("nh,mh->nm", q, k), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
