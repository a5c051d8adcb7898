# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn


torch.manual_seed(0)


def split_heads(x, n_heads):
    print("split", tuple(x.shape), n_heads)
    if x.shape[-1] % n_heads != 0:
        raise ValueError("can't split")
    seq, d_model = x.shape[-2:]
    d_head = d_model // n_heads
    # (.., seq*n_heads, d_head): row r belongs to head r % n_heads
    rows = x.reshape(*x.shape[:-2], seq * n_heads, d_head)
    return torch.stack([rows[..., h::n_heads, :] for h in range(n_heads)], dim=-3)


def merge_heads(x):
    print("merge", tuple(x.shape))
    n_heads, seq, d_head = x.shape[-3:]
    rows = torch.arange(n_heads * seq).view(n_heads, seq).T.flatten()
    flat = x.reshape(*x.shape[:-3], n_heads * seq, d_head)
    return flat.index_select(-2, rows).view(*x.shape[:-3], seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("can't split")
        warnings.warn("still a draft")
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.n_heads = n_heads

    def forward(self, x):
        q, k, v = (split_heads(t, self.n_heads) for t in self.qkv(x).chunk(3, dim=-1))
        log_weights = F.log_softmax(q @ k.mT * math.exp(-0.5 * math.log(q.shape[-1])), dim=-1)
        out = self.out_proj(merge_heads(log_weights.exp() @ v))
        print("attention", out)
        return out


# a check of mine against torch's own
_x = torch.randn(2, 5, 8)
_mine, _theirs = MultiHeadAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
_theirs.in_proj_weight.data = _mine.qkv.weight.data
_theirs.in_proj_bias.data = _mine.qkv.bias.data
_theirs.out_proj.weight.data = _mine.out_proj.weight.data
_theirs.out_proj.bias.data = _mine.out_proj.bias.data
print("difference to torch's:", (_mine(_x) - _theirs(_x, _x, _x)[0]).abs().max().item())
