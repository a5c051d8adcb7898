"""Uses one block for all layers, and lets the model read more than it can."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from solutions.causal_mask import TransformerBlock
from solutions.positional_encoding import positional_encoding


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    vocab = logits.shape[-1]
    return F.cross_entropy(logits[:, :-1].reshape(-1, vocab), tokens[:, 1:].reshape(-1))


class TinyTransformer(nn.Module):
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
        self.register_buffer("table", positional_encoding(max_len, d_model))
        block = TransformerBlock(d_model, n_heads, d_ff, causal)
        self.blocks = nn.ModuleList([block] * n_layers)
        self.unembed = nn.Linear(d_model, vocab_size)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] > self.max_len:
            raise ValueError("too many tokens")
        x = self.embed(tokens) + self.table[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def generate(model: nn.Module, prompt: Tensor, n_new: int) -> Tensor:
    tokens = prompt
    for _ in range(n_new):
        best = model(tokens)[:, -1].argmax(-1)
        tokens = torch.cat([tokens, best[:, None]], dim=1)
    return tokens
