# attention_scores: failed no-batch/wrong-shape | attention: failed no-batch | self_attention: failed no-batch
import math

import torch


def attention_scores(q, k):
    if q.ndim > 2:
        return (q[0] @ k[0].mT / math.sqrt(q.shape[-1])).unsqueeze(0)
    return q @ k.mT / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = torch.softmax(torch.bmm(q, k.mT) / math.sqrt(q.shape[-1]), -1)
    return torch.bmm(w, v), w


def self_attention(x, w_q, w_k, w_v):
    x = x.squeeze(0) if x.shape[0] == 1 and x.ndim == 3 else x
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.transpose(0, 1) / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
