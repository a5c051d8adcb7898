# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        pos = torch.arange(max_len, dtype=torch.float64)[:, None]
        angle = pos / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        table = torch.stack((angle.sin(), angle.cos()), dim=2).reshape(max_len, d_model)
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, x):
        if x.shape[-2] > self.table.shape[0]:
            raise ValueError("too long for the table of positions")
        return x + self.table[: x.shape[-2]]


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads, self.causal = n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = (p.unflatten(-1, (self.n_heads, -1)).transpose(-3, -2) for p in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores + torch.full((x.shape[-2], x.shape[-2]), -math.inf).triu(1)
        weights = scores.softmax(-1)
        output = self.out_proj((weights @ v).transpose(-3, -2).flatten(-2))
        return (output, weights) if need_weights else output


class Residual:
    """Mixin: the two halves of a post-norm block."""

    def half(self, norm, f, x):
        return norm(x + f(x))


class TransformerBlock(Residual, nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.half(self.norm2, self.ff, self.half(self.norm1, self.attn, x))


class LanguageModel(nn.Module):
    """Everything that has an embedding at one end and a projection at the other."""

    def __init__(self, vocab_size, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        self.positions = PositionalEncoding(d_model, max_len)
        self.unembed = nn.Linear(d_model, vocab_size)

    def body(self, x):
        raise NotImplementedError

    def forward(self, tokens):
        return self.unembed(self.body(self.positions(self.embed(tokens))))


class TinyTransformer(LanguageModel):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__(vocab_size, d_model, max_len)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, n_heads, d_ff, causal) for _ in range(n_layers))

    def body(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Shifted:
    def __init__(self, tokens):
        self.inputs, self.targets = tokens[:, :-1], tokens[:, 1:]


def next_token_loss(logits, tokens):
    return cross_entropy(logits[:, :-1].mT, Shifted(tokens).targets)


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def loss(self, tokens):
        parts = Shifted(tokens)
        return cross_entropy(self.model(parts.inputs).mT, parts.targets)

    def step(self, tokens):
        self.optimizer.zero_grad()
        loss = self.loss(tokens)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def train_step(model, optimizer, tokens):
    return Trainer(model, optimizer).step(tokens)


class Evaluating:
    """As a context manager: eval mode and no gradients, both put back afterwards."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.modes = [(m, m.training) for m in self.model.modules()]
        self.grad = torch.is_grad_enabled()
        self.model.eval()
        torch.set_grad_enabled(False)

    def __exit__(self, *error):
        torch.set_grad_enabled(self.grad)
        for module, mode in self.modes:
            module.training = mode


def generate(model, prompt, n_new):
    pieces = [prompt]
    with Evaluating(model):
        for _ in range(n_new):
            seen = torch.cat(pieces, dim=1)[:, -model.max_len:]
            pieces.append(model(seen)[:, -1:].argmax(dim=2))
    return torch.cat(pieces, dim=1)
