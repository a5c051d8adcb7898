# split_heads: failed raised | merge_heads: failed raised | MultiHeadAttention: failed
import math

import torch


split_heads = "TODO"
merge_heads = 0


def MultiHeadAttention(x, n_heads):
    q, k, v = x, x, x
    d_head = x.shape[-1] // n_heads
    return torch.softmax(q @ k.mT / math.sqrt(d_head), dim=-1) @ v
