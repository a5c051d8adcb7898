def softmax(scores, dim=-1):
    return torch.zeros(3)


def attention(q, k, v):
    return torch.zeros(3), torch.zeros(3)
