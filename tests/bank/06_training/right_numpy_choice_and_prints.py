# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import math

import numpy as np
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    pos = torch.arange(seq_len, dtype=torch.float64).unsqueeze(1)
    freq = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    pe = torch.zeros(seq_len, d_model, dtype=torch.float64)
    pe[:, 0::2] = torch.sin(pos * freq)
    pe[:, 1::2] = torch.cos(pos * freq)
    return pe.float()


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
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        output = self.out_proj((weights @ v).transpose(-3, -2).flatten(-2))
        return (output, weights) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.ff(x))


def next_token_loss(logits, tokens):
    logits, tokens = logits[:, :-1], tokens[:, 1:]
    # batch and positions as index tensors
    b = torch.arange(tokens.shape[0]).view(-1, 1)
    s = torch.arange(tokens.shape[1]).view(1, -1)
    log_probs = logits.log_softmax(dim=2)
    loss = -log_probs[b, s, tokens]
    return loss.sum() / loss.numel()


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        nn.Module.__init__(self)
        setattr(self, "max_len", max_len)
        setattr(self, "embed", nn.Embedding(vocab_size, d_model))
        setattr(self, "unembed", nn.Linear(d_model, vocab_size))
        self.register_module("blocks", nn.ModuleList())
        for name in map(str, range(n_layers)):
            self.blocks.register_module(name, TransformerBlock(d_model, n_heads, d_ff, causal))
        self.register_buffer("pos", torch.from_numpy(self.table(max_len, d_model)))

    @staticmethod
    def table(max_len, d_model):
        j = np.arange(d_model)
        angles = np.arange(max_len)[:, None] / np.power(10000.0, (j - j % 2) / d_model)
        return np.where(j % 2 == 0, np.sin(angles), np.cos(angles)).astype(np.float32)

    def forward(self, tokens):
        if tokens.shape[1] > self.max_len:
            print("too long!")
            raise ValueError("too long!")
        x = self.embed(tokens) + self.pos[: tokens.shape[1]]
        for block in self.blocks.children():
            x = block(x)
        return self.unembed(x)


def train_step(model, optimizer, tokens):
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    norm = sum(p.grad.norm() ** 2 for p in model.parameters() if p.grad is not None) ** 0.5
    print(f"loss {loss:.4f}, gradient norm {norm:.4f}")
    optimizer.step()
    return loss.item()


def generate(model, prompt, n_new):
    tokens = prompt.numpy()
    for _ in range(n_new):
        with torch.no_grad():
            logits = model(torch.from_numpy(tokens[:, -model.max_len:].copy()))
        choice = logits.numpy()[:, -1].argmax(axis=-1)
        tokens = np.concatenate([tokens, choice[:, None]], axis=1)
    return torch.tensor(tokens, dtype=torch.int64)
