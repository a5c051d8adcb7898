# softmax: failed no-gradient | attention_scores: failed no-gradient | attention: failed no-gradient | self_attention: failed no-gradient
import math

import torch


import numpy as np


def softmax(scores, dim=-1):
    x = scores.numpy()
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return torch.from_numpy(e / e.sum(axis=dim, keepdims=True))


def attention_scores(q, k):
    scores = q.detach().numpy() @ np.swapaxes(k.detach().numpy(), -1, -2)
    return torch.from_numpy(scores / np.sqrt(q.shape[-1]).astype(np.float32))


def attention(q, k, v):
    w = torch.softmax(torch.from_numpy(np.matmul(q.numpy(), k.mT.numpy())) / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    out = torch.tensor(np.array((w @ v).detach()))
    return out, w
