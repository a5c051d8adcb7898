# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import math

import torch
from torch import nn


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
    # one position at a time, as on the slide
    batch, seq, vocab = logits.shape
    total = 0.0
    for b in range(batch):
        for t in range(seq - 1):
            row = logits[b, t]
            largest = row.max().detach()
            log_norm = largest + torch.log(torch.exp(row - largest).sum())
            total = total + log_norm - row[tokens[b, t + 1]]
    return total / (batch * (seq - 1))


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.vocab_size = vocab_size
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        layers = []
        for i in range(n_layers):
            layers.append(TransformerBlock(d_model, n_heads, d_ff, causal))
        self.blocks = nn.ModuleList(layers)
        self.unembed = nn.Linear(d_model, vocab_size)
        table = torch.zeros(max_len, d_model)
        for pos in range(max_len):
            for i in range(d_model // 2):
                angle = pos / 10000 ** (2 * i / d_model)
                table[pos, 2 * i] = math.sin(angle)
                table[pos, 2 * i + 1] = math.cos(angle)
        self.register_buffer("table", table)

    def forward(self, tokens):
        if tokens.size(1) > self.max_len:
            raise ValueError("too many tokens")
        answers = []
        for sequence in tokens:  # each sequence by itself
            rows = []
            for pos in range(len(sequence)):
                rows.append(self.embed(sequence[pos]) + self.table[pos])
            x = torch.stack(rows)
            for block in self.blocks:
                x = block(x)
            answers.append(self.unembed(x))
        return torch.stack(answers)


def train_step(model, optimizer, tokens):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None
    logits = model(tokens)
    loss = next_token_loss(logits, tokens)
    loss.backward()
    optimizer.step()
    return loss.item()


def generate(model, prompt, n_new):
    sequences = prompt.tolist()
    for _ in range(n_new):
        windows = [s[max(0, len(s) - model.max_len):] for s in sequences]
        with torch.no_grad():
            logits = model(torch.tensor(windows))
        for s, row in zip(sequences, logits[:, -1].tolist()):
            best = 0
            for token in range(1, len(row)):
                if row[token] > row[best]:
                    best = token
            s.append(best)
    return torch.tensor(sequences)
