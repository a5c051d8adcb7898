# causal_mask: missing not-implemented | mask_scores: missing not-implemented | MultiHeadAttention: missing not-implemented | TransformerBlock: missing not-implemented
import torch
from torch import nn


def causal_mask(seq_len):
    # YOUR CODE HERE
    raise NotImplementedError()


def mask_scores(scores, mask):
    raise NotImplementedError()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        raise NotImplementedError()

    def forward(self, x, need_weights=False):
        raise NotImplementedError()


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        # YOUR CODE HERE
        raise NotImplementedError()

    def forward(self, x):
        raise NotImplementedError()
