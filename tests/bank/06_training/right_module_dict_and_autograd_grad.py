# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import math

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
    p = torch.stack(logits.unbind(dim=1)[:-1])  # (seq-1, batch, vocab)
    y = torch.stack(tokens.unbind(dim=1)[1:])
    each = torch.logsumexp(p, -1) - torch.take_along_dim(p, y[..., None], -1)[..., 0]
    return each.mean()


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.max_len = max_len
        self.n_layers = n_layers
        self.embed = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleDict()
        for i in range(n_layers):
            self.blocks[str(i)] = TransformerBlock(d_model, n_heads, d_ff, causal)
        self.unembed = nn.Linear(d_model, vocab_size)
        # half of the table each
        pe = positional_encoding(max_len, d_model)
        self.register_buffer("sines", pe[:, 0::2])
        self.register_buffer("cosines", pe[:, 1::2])

    def forward(self, tokens):
        n = tokens.shape[1]
        if not n <= self.max_len:
            raise ValueError(f"{n} > {self.max_len}")
        e = self.embed(tokens)
        x = torch.stack([e[..., 0::2] + self.sines[:n], e[..., 1::2] + self.cosines[:n]], dim=-1).flatten(-2)
        for i in range(self.n_layers):
            x = self.blocks[str(i)](x)
        return self.unembed(x)


def train_step(model, optimizer, tokens):
    params = [p for p in model.parameters() if p.requires_grad]
    loss = next_token_loss(model(tokens), tokens)
    grads = torch.autograd.grad(loss, params, allow_unused=True)
    for p, g in zip(params, grads):
        p.grad = g
    optimizer.step()
    return loss.item()


def generate(model, prompt, n_new):
    grad_was_on = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        tokens = prompt
        while tokens.shape[1] < prompt.shape[1] + n_new:
            window = tokens.narrow(1, max(0, tokens.shape[1] - model.max_len), min(tokens.shape[1], model.max_len))
            logits = model(window).select(1, -1)
            tokens = torch.cat([tokens, logits.argmax(1).view(-1, 1)], 1)
        return tokens
    finally:
        torch.set_grad_enabled(grad_was_on)
