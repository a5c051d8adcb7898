# softmax: failed raised | attention_scores: failed raised | attention: failed raised
import math

import torch


softmax = 3
attention_scores = torch.eye(3)


def attention(q, k):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ k, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
