# softmax: passed | attention_scores: passed | attention: passed | self_attention: passed
import math


softmax = lambda scores, dim=-1: (
    lambda e: e / e.sum(dim, keepdim=True)
)((scores - scores.amax(dim, keepdim=True)).exp())
attention_scores = lambda q, k: q @ k.mT / math.sqrt(q.shape[-1])
attention = lambda q, k, v: (lambda w: (w @ v, w))(attention_scores(q, k).softmax(-1))
self_attention = staticmethod(
    lambda x, w_q, w_k, w_v: attention(q=x @ w_q, v=x @ w_v, k=x @ w_k)
)
