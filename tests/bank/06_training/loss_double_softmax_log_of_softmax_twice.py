# next_token_loss: failed double-softmax | TinyTransformer: failed scaled-embedding | train_step: failed wrong-type | generate: failed mode-changed
import math

import torch
from torch import nn
from torch.nn import functional as F


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
    p = torch.softmax(torch.softmax(logits[:, :-1], -1), -1)
    q = p.gather(-1, tokens[:, 1:, None])
    return -torch.log(q).mean()


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.blocks = nn.ModuleList(
            [TransformerBlock(d_model, n_heads, d_ff, causal) for _ in range(n_layers)]
        )
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, tokens):
        seq = tokens.shape[1]
        if seq > self.max_len:
            raise ValueError("sequence too long")
        x = self.embed(tokens) * math.sqrt(self.embed.embedding_dim) + self.pe[:seq]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def train_step(model, optimizer, tokens):
    optimizer.zero_grad()
    logits = model(tokens)
    loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])
    loss.backward()
    optimizer.step()


def generate(model, prompt, n_new):
    was_training = model.training
    model.eval()
    if n_new == 0:
        return prompt
    tokens = prompt
    with torch.no_grad():
        for _ in range(n_new):
            logits = model(tokens[:, -model.max_len:])
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    model.train(was_training)
    return tokens
