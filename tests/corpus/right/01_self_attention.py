"""Right answers, none of which needs another one: what an attack costs is seen exercise by
exercise."""


def softmax(scores, dim=-1):
    powers = torch.exp(scores - scores.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)


def attention_scores(q, k):
    return torch.einsum("...td,...sd->...ts", q, k) * q.shape[-1] ** -0.5


def attention(q, k, v):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return weights @ v, weights


def self_attention(x, w_q, w_k, w_v):
    queries, keys, values = x @ w_q, x @ w_k, x @ w_v
    weights = (queries @ keys.mT / queries.shape[-1] ** 0.5).softmax(-1)
    return weights @ values, weights
