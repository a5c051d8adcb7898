# split_heads: missing not-implemented | merge_heads: missing not-implemented | MultiHeadAttention: missing not-implemented
from torch import nn


def split_head(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def mergeHeads(x):
    return x.transpose(-3, -2).flatten(-2)


class MultiheadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
