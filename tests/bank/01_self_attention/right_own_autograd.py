# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import collections
import math

import torch


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, dim):
        e = (scores - scores.amax(dim, keepdim=True)).exp_()
        e /= e.sum(dim, keepdim=True)
        ctx.save_for_backward(e)
        ctx.dim = dim
        return e

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(ctx.dim, keepdim=True)), None


def softmax(scores, dim=-1):
    return _Softmax.apply(scores, dim)


def attention_scores(q, k):
    *leading, t, d = q.shape
    s = k.shape[-2]
    scores = q.new_empty(0)
    scores = torch.cat([scores, (q.reshape(-1, t, d) @ k.reshape(-1, s, d).mT).flatten()])
    return scores.reshape(*leading, t, s) / d**0.5


def attention(q, k, v):
    Pair = collections.namedtuple("Pair", "output weights")
    weights = softmax(attention_scores(q, k))
    return Pair(weights @ v, weights)


def self_attention(x, w_q, w_k, w_v):
    # (x w_q)(x w_k)ᵀ = x (w_q w_kᵀ) xᵀ
    m = w_q @ w_k.mT / math.sqrt(w_q.shape[1])
    w = softmax(x @ m @ x.mT)
    return w @ x @ w_v, w
