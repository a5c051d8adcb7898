# merge_heads: failed too-slow | MultiHeadAttention: failed too-slow
from torch import nn


def split_heads(x, n_heads):
    d_model = x.shape[-1]
    if d_model % n_heads != 0:
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
    x = x.view(*x.shape[:-1], n_heads, d_model // n_heads)
    return x.transpose(-2, -3)


def merge_heads(x):
    h = 0
    out = x[..., 0, :, :]
    while h < x.shape[-3]:
        out = out + 0
    return out


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        done = False
        while not done:
            y = self.qkv(x)
        return y
