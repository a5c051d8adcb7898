"""Topic 06: a small causal transformer, its loss, one step of training, greedy generation.

Sources: Vaswani et al. 2017, "Attention Is All You Need", section 3; Radford et al. 2018,
"Improving Language Understanding by Generative Pre-Training", section 3.1 (the loss).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from solutions.causal_mask import TransformerBlock
from solutions.positional_encoding import positional_encoding


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, of each token under the logits one position before it.

    Shapes: logits (batch, seq, vocab), tokens (batch, seq) int64, seq at least 2 -> scalar.
    """
    predicted = logits[:, :-1].flatten(0, 1)  # (batch * (seq - 1), vocab)
    return F.cross_entropy(predicted, tokens[:, 1:].flatten())


def reversals(count: int, length: int, n_symbols: int, generator: torch.Generator) -> Tensor:
    """The toy task: random symbols, the separator (token n_symbols), the symbols reversed.

    -> int64 (count, 2 * length + 1).
    """
    symbols = torch.randint(0, n_symbols, (count, length), generator=generator)
    separator = torch.full((count, 1), n_symbols)
    return torch.cat([symbols, separator, symbols.flip(-1)], dim=-1)


class TinyTransformer(nn.Module):
    """Embedding plus sinusoidal encodings, n_layers blocks, and a projection to the vocabulary.

    Shapes: tokens (batch, seq) int64 -> logits (batch, seq, vocab).
    ValueError where seq is more than max_len.
    """

    encodings: Tensor

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
        self.max_len = max_len
        self.embed = nn.Embedding(vocab_size, d_model)
        self.register_buffer("encodings", positional_encoding(max_len, d_model))
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, n_heads, d_ff, causal) for _ in range(n_layers)
        )
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, tokens: Tensor) -> Tensor:
        seq = tokens.shape[-1]
        if seq > self.max_len:
            raise ValueError(f"{seq} tokens, but the model reads at most {self.max_len}")
        x = self.embed(tokens) + self.encodings[:seq]  # (batch, seq, d_model)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.unembed(x)
        return logits


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    """One optimizer step on the next-token loss of `tokens` (batch, seq); the loss before it."""
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def generate(model: TinyTransformer, prompt: Tensor, n_new: int) -> Tensor:
    """The likeliest token, n_new times: each joins what the next one is chosen from.

    Shapes: prompt (batch, t) int64 -> (batch, t + n_new). The model reads at most the last
    `model.max_len` tokens; the first of equal logits wins.
    """
    tokens = prompt
    for _ in range(n_new):
        logits = model(tokens[:, -model.max_len :])  # (batch, at most max_len, vocab)
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=-1)
    return tokens
