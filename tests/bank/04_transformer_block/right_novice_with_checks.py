# layer_norm: passed | TransformerBlock: passed | TransformerBlock.norm_first: passed
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        heads = torch.softmax(scores, dim=-1) @ v
        return self.out_proj(heads.transpose(-3, -2).flatten(-2))


def layer_norm(x, weight, bias, eps=1e-5):
    """
    Layer normalization.

    Arguments:
        x: tensor of shape (..., d)
        weight: tensor of shape (d,), gamma in the paper
        bias: tensor of shape (d,), beta in the paper
        eps: small number so that we never divide by zero

    Returns:
        tensor of the same shape as x
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError("x must be a tensor")
    if x.dim() < 1:
        raise ValueError("x needs at least one dimension")
    d = x.shape[-1]
    if weight.shape != (d,) or bias.shape != (d,):
        raise ValueError(f"weight and bias must have shape ({d},)")
    assert x.is_floating_point()

    # Step 1: the mean of every token
    mean = torch.mean(x, dim=-1, keepdim=True)
    assert mean.shape == x.shape[:-1] + (1,)
    # Step 2: the variance of every token (divide by d, NOT d - 1)
    difference = x - mean
    variance = torch.mean(difference * difference, dim=-1, keepdim=True)
    # Step 3: normalize
    normalized = difference / torch.sqrt(variance + eps)
    # Step 4: scale and shift
    result = normalized * weight
    result = result + bias
    assert result.shape == x.shape
    return result


class TransformerBlock(nn.Module):
    """One block of the transformer. norm_first chooses between post-norm and pre-norm."""

    def __init__(self, d_model, n_heads, d_ff, norm_first=False):
        super(TransformerBlock, self).__init__()
        if d_ff < 1:
            raise ValueError("d_ff must be positive")
        self.d_model = d_model
        self.norm_first = bool(norm_first)
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )
        # initialise like in the paper (I think)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, x):
        if x.shape[-1] != self.d_model:
            raise ValueError(f"expected {self.d_model} features, got {x.shape[-1]}")
        if self.norm_first == True:
            # first sublayer
            residual = x
            out = self.norm1(x)
            out = self.attn(out)
            out = residual + out
            # second sublayer
            residual = out
            out = self.norm2(out)
            out = self.ff(out)
            out = residual + out
            return out
        elif self.norm_first == False:
            residual = x
            out = self.attn(x)
            out = residual + out
            out = self.norm1(out)
            residual = out
            out = self.ff(out)
            out = residual + out
            out = self.norm2(out)
            return out
        else:
            raise ValueError("norm_first must be True or False")
