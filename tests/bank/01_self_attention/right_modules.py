# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch


class ScaledScores(torch.nn.Module):
    def forward(self, q, k):
        return q @ k.mT / math.sqrt(q.size(-1))


class Softmax(torch.nn.Module):
    def forward(self, scores, dim=-1):
        exps = (scores - scores.aminmax(dim=dim, keepdim=True).max).exp()
        return exps * exps.sum(dim, keepdim=True).reciprocal()


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = ScaledScores()
        self.softmax = torch.nn.Softmax(-1)
        self.dropout = torch.nn.Dropout(0.0)

    def forward(self, q, k, v):
        w = self.dropout(self.softmax(self.scores(q, k)))
        return w @ v, w


softmax = Softmax()
attention_scores = ScaledScores()
attention = Attention()


def self_attention(x, w_q, w_k, w_v):
    def linear(w):
        layer = torch.nn.Linear(*w.shape, bias=False)
        return torch.func.functional_call(layer, {"weight": w.mT}, (x,))

    return attention(linear(w_q), linear(w_k), linear(w_v))
