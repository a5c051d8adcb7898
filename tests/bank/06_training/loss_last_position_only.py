# next_token_loss: failed | TinyTransformer: failed | train_step: failed | generate: failed wrong-shape/wrong-count
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
    # "the next token" is the last one
    return F.cross_entropy(logits[:, -2], tokens[:, -1])


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.max_len = max_len
        self.d_model = d_model
        self.embed = nn.Embedding(vocab_size, d_model)
        self.register_buffer("table", positional_encoding(max_len, d_model))
        self.blocks = nn.ModuleList()
        for _ in range(n_layers):
            self.blocks.append(TransformerBlock(d_model, n_heads, d_ff, causal=causal))
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, tokens):
        batch, seq = tokens.shape
        if seq > self.max_len:
            raise ValueError(f"got {seq} tokens, at most {self.max_len}")
        h = self.embed(tokens) + self.table[:seq]
        for block in self.blocks:
            h = h + block(h)
        logits = self.unembed(h)
        return logits


def train_step(model, optimizer, tokens):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(tokens)[:, -2], tokens[:, -1])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def generate(model, prompt, n_new):
    tokens = prompt
    for _ in range(n_new + 1):
        logits = model(tokens[:, -model.max_len:])
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return tokens
