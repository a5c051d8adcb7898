# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import torch
import torch.nn as nn


# I do it with loops so that I see what happens.
def split_heads(x, n_heads):
    d_model = x.shape[-1]
    seq = x.shape[-2]
    if d_model % n_heads:
        raise ValueError(f"cannot split {d_model} into {n_heads}")
    d_head = d_model // n_heads
    out = torch.zeros(*x.shape[:-2], n_heads, seq, d_head)
    for h in range(n_heads):
        for pos in range(seq):
            for f in range(d_head):
                out[..., h, pos, f] = x[..., pos, h * d_head + f]
    return out


def merge_heads(x):
    n_heads, seq, d_head = x.shape[-3:]
    out = torch.zeros(*x.shape[:-3], seq, n_heads * d_head)
    for h in range(n_heads):
        for pos in range(seq):
            out[..., pos, h * d_head : (h + 1) * d_head] = x[..., h, pos, :]
    return out


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super(MultiHeadAttention, self).__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("bad number of heads")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def one_head(self, q, k, v):
        rows = []
        for i in range(q.shape[0]):
            scores = []
            for j in range(k.shape[0]):
                scores.append(torch.dot(q[i], k[j]) / self.d_head**0.5)
            w = torch.stack(scores).softmax(0)
            rows.append(sum(w[j] * v[j] for j in range(len(scores))))
        return torch.stack(rows)

    def forward(self, x):
        if x.dim() > 2:
            # one batch entry after the other
            return torch.stack([self.forward(entry) for entry in x])
        projected = self.qkv(x)
        heads = []
        for h in range(self.n_heads):
            a, b = h * self.d_head, (h + 1) * self.d_head
            d = self.d_model
            q, k, v = projected[:, a:b], projected[:, d + a : d + b], projected[:, 2 * d + a : 2 * d + b]
            heads.append(self.one_head(q, k, v))
        return self.out_proj(torch.cat(heads, dim=1))
