# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


def softmax(scores, dim=-1):
    """One slice at a time."""
    slices = scores.movedim(dim, -1)
    rows = []
    for row in slices.reshape(-1, slices.shape[-1]):
        e = (row - max(row)).exp()
        rows.append(e / sum(e))
    return torch.stack(rows).reshape(slices.shape).movedim(-1, dim)


def attention_scores(q, k):
    if q.dim() > 2:
        return torch.stack([attention_scores(one_q, one_k) for one_q, one_k in zip(q, k)])
    rows = []
    for query in q:
        rows.append(torch.stack([(query * key).sum() for key in k]))
    return torch.stack(rows) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    if q.dim() > 2:
        pairs = [attention(*one) for one in zip(q, k, v)]
        return torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
    weights = softmax(attention_scores(q, k))
    output = []
    for row in weights:
        total = torch.zeros(v.shape[-1])
        for w, value in zip(row, v):
            total = total + w * value
        output.append(total)
    return torch.stack(output), weights


def self_attention(x, w_q, w_k, w_v):
    if x.dim() > 2:
        outs, weights = [], []
        for item in x:
            o, w = self_attention(item, w_q, w_k, w_v)
            outs.append(o)
            weights.append(w)
        return torch.stack(outs), torch.stack(weights)
    q = torch.stack([token @ w_q for token in x])
    k = torch.stack([token @ w_k for token in x])
    v = torch.stack([token @ w_v for token in x])
    return attention(q, k, v)
