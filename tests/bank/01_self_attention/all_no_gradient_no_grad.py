# softmax: failed no-gradient | attention_scores: failed no-gradient | attention: failed no-gradient | self_attention: failed no-gradient
import math

import torch


@torch.no_grad()
def softmax(scores, dim=-1):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    with torch.no_grad():
        return q @ k.mT / math.sqrt(q.shape[-1])


@torch.inference_mode()
def attention(q, k, v):
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w


def self_attention(x, w_q, w_k, w_v):
    torch.set_grad_enabled(False)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return w @ v, w
