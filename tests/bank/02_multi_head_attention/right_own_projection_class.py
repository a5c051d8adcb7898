# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
import torch.nn as nn


class Projection(nn.Module):
    """My own Linear."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / d_in**0.5)
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def split_heads(x, n_heads):
    if x.shape[-1] % n_heads:
        raise ValueError("n_heads does not divide d_model")
    d_head = x.shape[-1] // n_heads
    return x.unfold(-1, d_head, d_head).transpose(-3, -2)


def merge_heads(x):
    d = x.ndim
    order = list(range(d - 3)) + [d - 2, d - 3, d - 1]
    x = x.permute(order)
    return x.reshape(x.shape[:-2] + (-1,))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads does not divide d_model")
        self.n_heads = n_heads
        self.qkv = Projection(d_model, 3 * d_model)
        self.out_proj = Projection(d_model, d_model)

    def forward(self, x):
        three = self.qkv(x)
        three = three.reshape(*three.shape[:-1], 3, self.n_heads, -1)
        three = three.movedim((-3, -2), (0, -3))
        q, k, v = three[0], three[1], three[2]
        scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1).div(q.shape[-1] ** 0.5)
        e = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
        w = e / e.sum(-1, keepdim=True)
        return self.out_proj(merge_heads((w.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)))
