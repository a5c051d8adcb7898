# softmax: failed no-gradient | attention: failed no-gradient
import math

import torch


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        e = torch.exp(x - x.amax(dim, keepdim=True))
        return e / e.sum(dim, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g, None


def softmax(scores, dim=-1):
    return Straight.apply(scores, dim)


def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    if w.requires_grad:
        w.register_hook(lambda g: 2 * g)
    return w @ v, w


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
