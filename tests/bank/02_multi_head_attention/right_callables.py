# split_heads: passed | merge_heads: passed | MultiHeadAttention: passed
import functools
import math
import operator

import torch
from torch import nn


def need_division(function):
    @functools.wraps(function)
    def wrapper(x, n_heads):
        if operator.mod(x.shape[-1], n_heads):
            raise ValueError("n_heads should divide the last dimension of x")
        return function(x, n_heads)

    return wrapper


@need_division
def split_heads(x, n_heads):
    n = x.ndim
    return x.reshape(*x.shape[:-1], n_heads, -1).permute(*range(n - 2), n - 1, n - 2, n)


class Merge:
    def __call__(self, x):
        # Horner would be proud
        moved = x.permute(*range(x.ndim - 3), -2, -3, -1)
        return moved.reshape(*moved.shape[:-2], math.prod(moved.shape[-2:]))


merge_heads = Merge()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if operator.mod(d_model, n_heads):
            raise ValueError("n_heads should divide d_model")
        self.add_module("qkv", nn.Linear(d_model, 3 * d_model))
        self.add_module("out_proj", nn.Linear(d_model, d_model))
        self.split = functools.partial(split_heads, n_heads=n_heads)

    @staticmethod
    @functools.lru_cache(maxsize=None)
    def root(d_head):
        return math.sqrt(d_head)

    @property
    def steps(self):
        yield self.qkv
        yield functools.partial(torch.chunk, chunks=3, dim=-1)
        yield lambda parts: tuple(map(self.split, parts))
        yield lambda qkv: (qkv[0] @ qkv[1].mT / self.root(qkv[0].shape[-1]), qkv[2])
        yield lambda pair: torch.softmax(pair[0], -1) @ pair[1]
        yield merge_heads
        yield self.out_proj

    def forward(self, x):
        return functools.reduce(lambda value, step: step(value), self.steps, x)
