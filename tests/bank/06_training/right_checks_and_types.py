# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import math

import torch
from torch import nn
from torch.nn import functional as F


from torch import Tensor
from torch.optim import Optimizer


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


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    if logits.ndim != 3 or tokens.ndim != 2:
        raise ValueError("logits must be (batch, seq, vocab), tokens (batch, seq)")
    if logits.shape[:2] != tokens.shape:
        raise ValueError(f"{tuple(logits.shape)} and {tuple(tokens.shape)} do not fit")
    if tokens.shape[1] < 2:
        raise ValueError("nothing to predict")
    assert tokens.dtype == torch.int64
    predicted: Tensor = logits[:, :-1].reshape(-1, logits.shape[-1])
    wanted: Tensor = tokens[:, 1:].reshape(-1)
    return F.cross_entropy(input=predicted, target=wanted)


class TinyTransformer(nn.Module):
    max_len: int

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        max_len: int,
        causal: bool = True,
    ) -> None:
        super().__init__()
        for name, size in [("vocab_size", vocab_size), ("d_model", d_model), ("n_heads", n_heads),
                           ("d_ff", d_ff), ("n_layers", n_layers), ("max_len", max_len)]:
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} must be a positive int, not {size!r}")
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model} features")
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, n_heads, d_ff, causal) for _ in range(n_layers)
        )
        self.unembed = nn.Linear(d_model, vocab_size)
        self.pe: Tensor
        self.register_buffer("pe", positional_encoding(max_len, d_model), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.dim() != 2:
            raise ValueError("tokens must be (batch, seq)")
        seq: int = tokens.shape[1]
        if seq > self.max_len:
            raise ValueError(f"{seq} tokens, at most {self.max_len} are possible")
        x: Tensor = self.embed(tokens) + self.pe[:seq]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def train_step(model: nn.Module, optimizer: Optimizer, tokens: Tensor) -> float:
    if not isinstance(model, nn.Module):
        raise TypeError("model")
    if not isinstance(optimizer, Optimizer):
        raise TypeError("optimizer")
    optimizer.zero_grad()
    loss: Tensor = next_token_loss(logits=model(tokens), tokens=tokens)
    if not torch.isfinite(loss):
        raise RuntimeError(f"the loss is {loss.item()}")
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def generate(model: nn.Module, prompt: Tensor, n_new: int) -> Tensor:
    if prompt.ndim != 2 or prompt.shape[1] == 0:
        raise ValueError("prompt must be (batch, t) with t at least 1")
    if n_new < 0:
        raise ValueError("n_new must not be negative")
    max_len: int = model.max_len
    tokens: Tensor = prompt
    for _ in range(n_new):
        window: Tensor = tokens[:, -max_len:]
        assert window.shape[1] <= max_len
        choice: Tensor = model(window)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, choice], dim=1)
    assert tokens.shape == (prompt.shape[0], prompt.shape[1] + n_new)
    return tokens
