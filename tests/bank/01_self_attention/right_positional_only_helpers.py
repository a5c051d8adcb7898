# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math

import torch
from torch import Tensor


def flatten_leading(x, keep, /):
    return x.reshape((-1,) + tuple(x.shape[x.ndim - keep :]))


def softmax(scores: Tensor, dim: int = -1, *extra, **options) -> Tensor:
    dim = dim % scores.ndim
    order = [d for d in range(scores.ndim) if d != dim] + [dim]
    back = [order.index(d) for d in range(scores.ndim)]
    rows = scores.permute(order)
    biggest = rows.cummax(-1).values[..., -1:]
    e = (rows - biggest).exp()
    return (e / e.cumsum(-1)[..., -1:]).permute(back)


def attention_scores(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    scale = scale or 1 / math.sqrt(q.shape[-1])
    return torch.inner(q, k) * scale if q.ndim == 2 else scale * torch.matmul(q, k.adjoint())


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    fq, fk, fv = (flatten_leading(x, 2) for x in (q, k, v))
    pairs = [(torch.softmax(torch.addmm(torch.zeros(1), a, b.t(), beta=0, alpha=a.shape[1] ** -0.5), 1), c)
             for a, b, c in zip(fq, fk, fv)]
    weights = torch.stack([w for w, _ in pairs]).unflatten(0, q.shape[:-2] or (1,))
    output = torch.stack([w @ c for w, c in pairs]).unflatten(0, q.shape[:-2] or (1,))
    return (output, weights) if q.ndim > 2 else (output[0], weights[0])


def self_attention(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> tuple[Tensor, Tensor]:
    if x.ndim == 2:
        return attention(x.mm(w_q), x.mm(w_k), x.mm(w_v))
    pairs = [self_attention(x[i], w_q, w_k, w_v) for i in range(len(x))]
    return tuple(torch.stack(parts) for parts in zip(*pairs))
