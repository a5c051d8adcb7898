# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


from torch.func import vmap


def softmax(scores, dim=-1):
    def one(row):
        e = torch.exp(row - row.max())
        return e / e.sum()

    if scores.ndim == 1:
        return one(scores)
    moved = scores.movedim(dim, -1)
    flat = moved.reshape(-1, moved.shape[-1])
    return vmap(one)(flat).reshape(moved.shape).movedim(-1, dim)


def attention_scores(q, k):
    dot = lambda a, b: (a * b).sum() / math.sqrt(a.shape[0])
    table = vmap(vmap(dot, in_dims=(None, 0)), in_dims=(0, None))
    for _ in range(q.ndim - 2):
        table = vmap(table)
    return table(q, k)


def attention(q, k, v):
    def single(q, k, v):
        w = torch.softmax(q @ k.T / q.shape[-1] ** 0.5, 1)
        return w @ v, w

    f = single
    for _ in range(q.ndim - 2):
        f = vmap(f)
    return f(q, k, v)


def self_attention(x, w_q, w_k, w_v):
    f = lambda x: attention(x @ w_q, x @ w_k, x @ w_v)
    for _ in range(x.ndim - 2):
        f = vmap(f)
    return f(x)
