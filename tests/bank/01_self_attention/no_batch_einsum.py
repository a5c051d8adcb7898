# attention_scores: failed no-batch | attention: failed no-batch | self_attention: failed no-batch
import math

import torch


def attention_scores(q, k):
    return torch.einsum("td,sd->ts", q, k) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.shape[-1]), -1)
    return torch.einsum("bts,bsv->btv", w, v), w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = (torch.einsum("nm,mh->nh", x, w) for w in (w_q, w_k, w_v))
    w = torch.softmax(torch.einsum("nh,mh->nm", q, k) / math.sqrt(q.shape[-1]), -1)
    return torch.einsum("nm,mh->nh", w, v), w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
