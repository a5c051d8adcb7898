"""Takes a score of 0 for no attention: the future gets a share all the same."""

import math

import torch
from torch import Tensor

from solutions.multi_head_attention import MultiHeadAttention as UnmaskedAttention
from solutions.multi_head_attention import merge_heads, split_heads
from solutions.transformer_block import TransformerBlock as UnmaskedBlock


def causal_mask(seq_len: int) -> Tensor:
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    return scores * mask


class MultiHeadAttention(UnmaskedAttention):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__(d_model, n_heads)
        self.causal = causal

    def forward(self, x, need_weights=False):
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj(merge_heads(weights @ v))
        return (output, weights) if need_weights else output


class TransformerBlock(UnmaskedBlock):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__(d_model, n_heads, d_ff)
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
