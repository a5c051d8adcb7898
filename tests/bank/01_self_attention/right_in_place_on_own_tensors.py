# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import torch


def softmax(scores, dim=-1):
    out = scores.clone()
    out -= scores.amax(dim, keepdim=True)
    out.exp_()
    return out.div(out.sum(dim, keepdim=True))


def attention_scores(q, k):
    scores = torch.zeros(*q.shape[:-1], k.shape[-2])
    for j in range(k.shape[-2]):
        scores[..., j] = (q * k[..., j : j + 1, :]).sum(-1)
    scores /= q.shape[-1] ** 0.5
    return scores


def attention(q, k, v):
    scores = attention_scores(q, k)
    scores -= scores.max(-1, keepdim=True).values.detach()
    weights = scores.exp()
    weights = weights / weights.sum(-1, keepdim=True)
    output = torch.zeros(*q.shape[:-1], v.shape[-1])
    for j in range(v.shape[-2]):
        output += weights[..., j, None] * v[..., j, None, :]
    return output, weights


def self_attention(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    q *= q.shape[-1] ** -0.5
    weights = torch.softmax(q @ k.mT, dim=-1)
    return weights @ v, weights
