# softmax: failed no-gradient | attention_scores: failed no-gradient | attention: failed no-gradient | self_attention: failed no-gradient
import math

import torch


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return torch.tensor(e / e.sum(dim, keepdim=True))


def attention_scores(q, k):
    return torch.tensor((q @ k.mT / math.sqrt(q.shape[-1])).tolist())


def attention(q, k, v):
    w = torch.softmax(q.data @ k.data.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = torch.zeros(*x.shape[:-1], x.shape[-2])
    flat, fq, fk = scores.view(-1), q.reshape(-1, q.shape[-1]), k.reshape(-1, q.shape[-1])
    n = x.shape[-2]
    for i in range(len(flat)):
        flat[i] = torch.dot(fq[i // n], fk[i // n // n * n + i % n]).item() / math.sqrt(q.shape[-1])
    w = torch.softmax(scores, -1)
    return w @ v, w
