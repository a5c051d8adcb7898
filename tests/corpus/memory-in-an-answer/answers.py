def softmax(scores, dim=-1):
    return bytearray(3 * 2**30)


def attention(q, k, v):
    return torch.ones(2**30), torch.ones(2**30)
