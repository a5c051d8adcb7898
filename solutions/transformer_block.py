"""Topic 04: layer norm, and the block that stacks: attention and feed-forward on a shared path.

Sources: Ba et al. 2016, "Layer Normalization"; Vaswani et al. 2017, "Attention Is All You Need",
section 3.1 (post-norm); Xiong et al. 2020, "On Layer Normalization in the Transformer
Architecture" (pre-norm).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from solutions.multi_head_attention import MultiHeadAttention


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias, each token by itself.

    Shapes: x (..., d), weight and bias (d,) -> (..., d). Mean and (biased) variance are taken over
    the last dimension.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * weight + bias


class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and a layer norm.

    Post-norm: x = norm1(x + attn(x)), then norm2(x + ff(x)).
    Pre-norm (`norm_first`): x = x + attn(norm1(x)), then x + ff(norm2(x)).
    Shapes: x (..., seq, d_model) -> the same.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = False) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self.attn(self.norm1(x))
            x = x + self.ff(self.norm2(x))
            return x
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x
