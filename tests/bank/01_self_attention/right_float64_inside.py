# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    wide = scores.double()
    e = (wide - wide.max(dim, keepdim=True).values).exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)


def attention_scores(q, k):
    return (q.double() @ k.double().mT / math.sqrt(q.shape[-1])).float()


def attention(q, k, v):
    w = torch.softmax(q.double() @ k.double().mT / math.sqrt(q.shape[-1]), dim=-1)
    return (w @ v.double()).float(), w.float()


def self_attention(x, w_q, w_k, w_v):
    x, w_q, w_k, w_v = (t.to(torch.float64) for t in (x, w_q, w_k, w_v))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    return (w @ v).type(torch.float32), w.type(torch.float32)
