# softmax: failed no-gradient/result-changed | attention_scores: failed no-gradient/result-changed
import math

import torch


def softmax(scores, dim=-1):
    out = torch.empty(scores.shape)
    torch.exp(scores - scores.amax(dim, keepdim=True), out=out)
    return out / out.sum(dim, keepdim=True)


def attention_scores(q, k):
    out = torch.empty(*q.shape[:-1], k.shape[-2])
    torch.matmul(q, k.mT, out=out)
    return out / math.sqrt(q.shape[-1])


def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
