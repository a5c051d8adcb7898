# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import torch
import torch.nn.functional as F


def softmax(scores, dim=-1):
    m = scores.max(dim, keepdim=True)[0].detach()
    log_total = m + (scores - m).exp().sum(dim, keepdim=True).log()
    return torch.exp(scores - log_total)


def attention_scores(q, k):
    # Each operand takes its share of the scale.
    scale = q.shape[-1] ** 0.25
    return (q / scale) @ (k / scale).swapaxes(-1, -2)


def attention(q, k, v):
    logits = attention_scores(q, k)
    weights = F.log_softmax(logits, dim=-1).exp()
    return weights.matmul(v), weights


def self_attention(x, w_q, w_k, w_v):
    return attention(F.linear(x, w_q.T), F.linear(x, w_k.T), F.linear(x, w_v.T))
