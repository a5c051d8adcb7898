# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, n_heads):
    d = x.shape[-1]
    if d % n_heads:
        raise ValueError()
    index = torch.arange(d).view(n_heads, 1, d // n_heads)
    wide = x.unsqueeze(-3).expand(*x.shape[:-2], n_heads, *x.shape[-2:])
    return wide.gather(-1, index.expand(*wide.shape[:-1], d // n_heads))


def merge_heads(x):
    first, *others = x.unbind(dim=-3)
    for other in others:
        first = torch.concat((first, other), dim=-1)
    return first.clone()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def project(self, x, which, head):
        start = which * self.d_model + head * self.d_head
        rows = slice(start, start + self.d_head)
        return F.linear(x, self.qkv.weight[rows], self.qkv.bias[rows])

    def forward(self, x):
        out = self.out_proj.bias
        for head in range(self.n_heads):
            q, k, v = (self.project(x, which, head) for which in range(3))
            a = F.softmax(q @ k.mT * self.d_head ** -0.5, dim=-1) @ v
            columns = slice(head * self.d_head, (head + 1) * self.d_head)
            out = out + F.linear(a, self.out_proj.weight[:, columns])
        return out
