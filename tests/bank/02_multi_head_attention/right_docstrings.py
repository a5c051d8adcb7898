# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
# -*- coding: utf-8 -*-
# Assignment 2, my answers
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, n_heads):
    """
    This function splits the last dimension in heads.

    Parameters:
        x: tensor of shape (..., seq, d_model)
        n_heads: how many heads

    Returns:
        tensor of shape (..., n_heads, seq, d_head)
    """
    # first I get the sizes
    seq = x.shape[-2]
    d_model = x.shape[-1]

    # then I check them
    if d_model % n_heads != 0:
        raise ValueError("d_model is not a multiple of n_heads!!")

    # size of one head
    d_head = int(d_model / n_heads)

    # now the heads come out one after the other
    heads = []
    for h in range(n_heads):
        start = h * d_head
        end = start + d_head
        head = x[..., start:end]      # (..., seq, d_head)
        head = head.unsqueeze(-3)     # (..., 1, seq, d_head)
        heads.append(head)

    # and get glued together
    result = torch.cat(heads, dim=-3)
    return result


def merge_heads(x):
    """
    The opposite of split_heads.

    (..., n_heads, seq, d_head) -> (..., seq, d_model)
    """
    n_heads = x.shape[-3]
    pieces = []
    for h in range(n_heads):
        piece = x[..., h, :, :]       # (..., seq, d_head)
        pieces.append(piece)
    result = torch.cat(pieces, dim=-1)
    return result


class MultiHeadAttention(nn.Module):
    """
    Multi-head attention, as in "Attention is all you need".
    """

    def __init__(self, d_model, n_heads):
        super(MultiHeadAttention, self).__init__()

        if d_model % n_heads != 0:
            raise ValueError("d_model is not a multiple of n_heads!!")

        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads

        # one layer for queries, keys and values
        self.qkv = nn.Linear(d_model, 3 * d_model)
        # last layer
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        """x: (..., seq, d_model) -> the same shape"""
        # step 1: project
        qkv = self.qkv(x)
        q = qkv[..., 0 : self.d_model]
        k = qkv[..., self.d_model : 2 * self.d_model]
        v = qkv[..., 2 * self.d_model : 3 * self.d_model]

        # step 2: heads
        q = split_heads(q, self.n_heads)
        k = split_heads(k, self.n_heads)
        v = split_heads(v, self.n_heads)

        # step 3: attention
        k_t = torch.transpose(k, -1, -2)
        scores = torch.matmul(q, k_t)
        scores = scores / math.sqrt(self.d_head)
        weights = F.softmax(scores, dim=-1)
        out = torch.matmul(weights, v)

        # step 4: back together
        out = merge_heads(out)
        out = self.out_proj(out)
        return out
