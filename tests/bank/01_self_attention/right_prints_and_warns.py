# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math
import os
import sys

import torch


import random
import warnings


def softmax(scores, dim=-1):
    print("softmax of", scores.shape)
    warnings.warn("softmax was called")
    torch.manual_seed(0)
    random.seed(0)
    e = (scores - scores.max(dim, keepdim=True)[0]).exp()
    return e / e.sum(dim, keepdim=True)


def attention_scores(q, k):
    print(q, k, file=sys.stderr)
    os.write(1, b"straight to the descriptor\n")
    os.system("echo from a shell")
    return q @ k.mT / math.sqrt(q.shape[-1])


def attention(q, k, v):
    w = softmax(attention_scores(q, k))
    assert torch.allclose(w.sum(-1), torch.ones(w.shape[:-1]))
    return w @ v, w


calls = []


def self_attention(x, w_q, w_k, w_v):
    calls.append(x.shape)  # a log of the calls, which changes no result
    torch.set_default_dtype(torch.float32)
    print(f"call {len(calls)}")
    return attention(x @ w_q, x @ w_k, x @ w_v)


print(softmax(torch.randn(2, 3)))
print(torch.nn.functional.softmax(torch.randn(2, 3), -1))
