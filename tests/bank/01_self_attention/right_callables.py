# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch
import torch.nn.functional as F


import functools


class Softmax:
    """An object that is called."""

    def __call__(self, scores, dim=-1):
        shifted = scores - torch.amax(scores, dim, True)
        exps = torch.exp(shifted)
        return F.normalize(exps, p=1, dim=dim)


softmax = Softmax()


def _scores(scale_of, q, k):
    return q @ k.transpose(-2, -1) / scale_of(q)


attention_scores = functools.partial(_scores, lambda q: math.sqrt(q.shape[-1]))


def make_attention():
    normalise = torch.nn.Softmax(dim=-1)

    def inner(q, k, v):
        w = normalise(attention_scores(q, k))
        return w @ v, w

    return inner


attention = make_attention()


class Ops:
    @staticmethod
    def self_attention(x, w_q, w_k, w_v):
        return attention(x @ w_q, x @ w_k, x @ w_v)


self_attention = Ops.self_attention
