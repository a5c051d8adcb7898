# softmax: failed raised | attention_scores: failed raised | attention: failed raised | self_attention: failed raised
import torch


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def softmax(scores, dim=-1):
    raise Mute()


def attention_scores(q, k):
    raise ValueError("x" * 10**7)


def attention(q, k, v):
    torch.empty(10**13)
    return q, k


def self_attention(x, w_q, w_k, w_v):
    held = []
    while True:
        held.append(torch.empty(10**8))
