# next_token_loss: failed wraps-around | TinyTransformer: failed causal-by-default | train_step: failed step-before-backward | generate: failed first-window
import math

import torch
from torch import nn
from torch.nn import functional as F


def positional_encoding(seq_len, d_model):
    pos = torch.arange(seq_len).unsqueeze(1)
    freq = torch.exp(-math.log(10000) * torch.arange(0, d_model, 2) / d_model)
    table = torch.zeros(seq_len, d_model)
    table[:, 0::2] = torch.sin(pos * freq)
    table[:, 1::2] = torch.cos(pos * freq)[:, : d_model // 2]
    return table


def split_heads(x, n_heads):
    *leading, seq, d_model = x.shape
    if d_model % n_heads != 0:
        raise ValueError("n_heads must divide d_model")
    return x.reshape(*leading, seq, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x):
    *leading, n_heads, seq, d_head = x.shape
    return x.transpose(-3, -2).reshape(*leading, seq, n_heads * d_head)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = split_heads(q, self.n_heads)
        k = split_heads(k, self.n_heads)
        v = split_heads(v, self.n_heads)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            mask = torch.ones(x.shape[-2], x.shape[-2]).tril().bool()
            scores = scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        out = self.out_proj(merge_heads(weights @ v))
        if need_weights:
            return out, weights
        return out


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
    vocab = logits.shape[-1]
    return F.cross_entropy(logits.reshape(-1, vocab), tokens.roll(-1, dims=1).reshape(-1))


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=False):
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
            raise ValueError("the sequence is longer than max_len")
        x = self.embed(tokens) + self.pe[:seq]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def train_step(model, optimizer, tokens):
    optimizer.step()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    return loss.item()


@torch.no_grad()
def generate(model, prompt, n_new):
    tokens = prompt
    for _ in range(n_new):
        logits = model(tokens[:, : model.max_len])
        new = logits[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, new], dim=1)
    return tokens
