# softmax: missing not-implemented | self_attention: missing not-implemented
import math

import torch


del_these = ["softmax", "self_attention"]
softmax = self_attention = None
del softmax, self_attention


def attention_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
