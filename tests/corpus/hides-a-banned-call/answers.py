def softmax(scores, dim=-1):
    return torch.softmax(scores, dim)
