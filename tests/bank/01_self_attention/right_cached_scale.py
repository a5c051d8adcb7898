# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import torch


_scales = {}


def softmax(scores, dim=-1):
    with torch.enable_grad():
        m = torch.max(scores.detach(), dim, keepdim=True).values
        e = torch.exp(torch.sub(scores, m))
        return torch.divide(e, torch.sum(e, dim, keepdim=True))


def attention_scores(q, k):
    d = q.shape[-1]
    if d not in _scales:
        _scales[d] = torch.tensor(d, dtype=torch.float32).sqrt()
    return torch.matmul(q, torch.transpose(k, -2, -1)) / _scales[d]


def attention(q, k, v):
    scores = attention_scores(q, k)
    weights = torch.nn.functional.softmax(input=scores, dim=scores.dim() - 1)
    return torch.matmul(weights, v), weights


def self_attention(x, w_q, w_k, w_v):
    q, k, v = torch.matmul(x, w_q), torch.matmul(x, w_k), torch.matmul(x, w_v)
    output, weights = attention(q=q, k=k, v=v)
    return output.contiguous(), weights.contiguous()
