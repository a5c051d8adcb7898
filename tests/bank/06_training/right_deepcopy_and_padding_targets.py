# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import copy

import torch
from torch import nn
from torch.nn import functional as F


def positional_encoding(seq_len, d_model):
    angles = torch.outer(
        torch.arange(seq_len, dtype=torch.float64),
        1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model),
    )
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("sequence longer than the table")
        return x + self.table[: x.shape[-2]]


def split_heads(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len)).bool()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{n_heads} heads do not divide {d_model}")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = [split_heads(t, self.n_heads) for t in (q, k, v)]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            scores = scores.masked_fill(~causal_mask(x.shape[-2]), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj(merge_heads(weights @ v))
        if need_weights:
            return output, weights
        return output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x


def next_token_loss(logits, tokens):
    # the last position has nothing to predict: -100 is ignored, in the mean as well
    targets = torch.cat([tokens[:, 1:], torch.full_like(tokens[:, :1], -100)], dim=1)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embed.weight, std=0.02)
        first = TransformerBlock(d_model, n_heads, d_ff, causal)
        self.blocks = nn.ModuleList([copy.deepcopy(first) for _ in range(n_layers)])
        self.unembed = nn.Linear(d_model, vocab_size)
        nn.init.zeros_(self.unembed.bias)
        self.register_buffer("pe", positional_encoding(2 * max_len, d_model))

    def forward(self, tokens):
        seq = tokens.shape[1]
        if seq > self.max_len:
            raise ValueError("longer than max_len")
        x = self.embed(tokens) + self.pe[:seq]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def train_step(model, optimizer, tokens):
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    before = loss.item()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()  # so that nothing is left over
    return before


def generate(model, prompt, n_new):
    frozen = copy.deepcopy(model).eval()
    for p in frozen.parameters():
        p.requires_grad_(False)
    tokens = prompt
    for _ in range(n_new):
        with torch.no_grad():
            logits = frozen(tokens[:, -frozen.max_len:])
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return tokens
