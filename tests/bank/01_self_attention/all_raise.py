# softmax: failed raised | attention_scores: failed raised | attention: failed raised | self_attention: failed raised
import math
import sys


def softmax(scores, dim=-1):
    return scores.exponential / 0


def attention_scores(q, k):
    return q @ k.mT / math.sqrt(d)


def attention(q, k, v):
    sys.exit("leaving")


def self_attention(x, w_q, w_k, w_v):
    return self_attention(x, w_q, w_k, w_v)
