# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return torch.einsum("...,...->...", e, 1 / e.sum(dim=dim, keepdim=True).expand_as(e))


def attention_scores(q, k):
    return torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(k.shape[-1])


def attention(q, k, v):
    w = torch.einsum("...td,...sd->...ts", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("...ts,...sv->...tv", w, v), w


def self_attention(x, w_q, w_k, w_v):
    q = torch.einsum("...nm,mh->...nh", x, w_q)
    k = torch.einsum("...nm,mh->...nh", x, w_k)
    v = torch.einsum("...nm,mh->...nh", x, w_v)
    return attention(q, k, v)
