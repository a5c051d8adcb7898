"""Topic 06: what is asked about training a small model, and what goes wrong in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from autograder.exercises.causal_mask import CausalBlock
from autograder.exercises.multi_head_attention import but
from autograder.exercises.posing import (
    Answer,
    Draw,
    Exercise,
    Misconception,
    Posed,
    Setup,
    Topic,
    once_more,
    reversed_batch,
)
from autograder.exercises.transformer_block import is_clear
from autograder.student.cases import Outcome, Question, Raised, Response
from autograder.student.evaluation import build_module
from solutions import training as reference
from solutions.positional_encoding import positional_encoding

# --- next_token_loss -----------------------------------------------------------------------------


def loss_cases(draw: Draw) -> Iterator[Posed]:
    for batch, seq, vocab in [
        *(draw.sizes(3, 3, 7) for _ in range(3)),
        (3, 4, 5),
        (3, 4, 5),
        (4, 2, 6),
        (1, 5, 4),
        (5, 3, 2),
        (4, 4, 4),
        (2, 3, 1),
        (1, 2, 3),
    ]:
        yield Posed(
            "logits and tokens",
            {
                "logits": draw.normal(batch, seq, vocab) * 2,
                "tokens": draw.integers(0, vocab, batch, seq),
            },
            1,
        )


def _mean_of(
    said: Callable[[Tensor], Tensor] = lambda logits: logits[:, :-1],
    came: Callable[[Tensor], Tensor] = lambda tokens: tokens[:, 1:],
    loss: Callable[..., Tensor] = functional.cross_entropy,
    **settings: Any,
) -> Answer:
    """The loss of certain logits on certain tokens, both of them (batch, some)."""

    def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
        return loss(said(logits).flatten(0, 1), came(tokens).flatten(), **settings)

    return next_token_loss


def _losses(logits: Tensor, tokens: Tensor) -> Tensor:
    """Of each prediction: (batch, seq - 1)."""
    return functional.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none")


def _of_losses(reduce: Callable[[Tensor], Tensor]) -> Answer:
    return lambda logits, tokens: reduce(_losses(logits, tokens))


def _of_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    return functional.nll_loss(logits.softmax(-1), tokens)


def _flattened_first(logits: Tensor, tokens: Tensor) -> Tensor:
    """The last token of a sequence predicts the first of the next."""
    return functional.cross_entropy(logits.flatten(0, 1)[:-1], tokens.flatten()[1:])


def _reshaped(logits: Tensor, tokens: Tensor) -> Tensor:
    """(batch, vocab, seq) by a reshape, where it takes a transpose."""
    batch, seq, vocab = logits[:, :-1].shape
    return functional.cross_entropy(logits[:, :-1].reshape(batch, vocab, seq), tokens[:, 1:])


def _over_positions(logits: Tensor, tokens: Tensor) -> Tensor:
    shares = logits[:, :-1].log_softmax(1)  # (batch, seq - 1, vocab)
    return -shares.gather(-1, tokens[:, 1:, None]).mean()


def _double_softmax(logits: Tensor) -> Tensor:
    return logits[:, :-1].softmax(-1)


NEXT_TOKEN_LOSS = Exercise(
    id="next_token_loss",
    points=2,
    reference=reference.next_token_loss,
    cases=loss_cases,
    outputs=["loss"],
    banned=["attention"],
    misconceptions=[
        Misconception(
            "no-shift",
            "Each position is asked for its own token, which it has just read. It should say the "
            "next one: the logits at position i are compared with the token at i + 1, "
            "`logits[:, :-1]` with `tokens[:, 1:]`.",
            [
                _mean_of(lambda x: x, lambda tokens: tokens),
                _mean_of(lambda x: x[:, :-1], lambda tokens: tokens[:, :-1]),
                _mean_of(lambda x: x[:, 1:], lambda tokens: tokens[:, 1:]),
            ],
        ),
        Misconception(
            "wrong-shift",
            "You shift the wrong way, or too far. Logits at position i are about the token at "
            "i + 1: `logits[:, :-1]` against `tokens[:, 1:]`.",
            [
                _mean_of(lambda x: x[:, 1:], lambda tokens: tokens[:, :-1]),
                _mean_of(lambda x: x[:, :-2], lambda tokens: tokens[:, 2:]),
                _mean_of(lambda x: x[1:], lambda tokens: tokens[:-1]),
                _mean_of(lambda x: x[:-1], lambda tokens: tokens[1:]),
            ],
        ),
        Misconception(
            "summed",
            "Your loss is a sum where the mean is asked for: over all predictions of all "
            "sequences, batch * (seq - 1) of them. A sum grows with the batch.",
            [
                _of_losses(torch.sum),
                _of_losses(lambda losses: losses.sum(-1).mean()),
                _of_losses(lambda losses: losses.sum(0).mean()),
            ],
        ),
        Misconception(
            "double-softmax",
            "You hand probabilities to a loss that takes raw logits: `cross_entropy` has its own "
            "softmax inside. With two of them the loss can hardly fall.",
            [_mean_of(_double_softmax), _mean_of(lambda x: x.softmax(-1), lambda tokens: tokens)],
        ),
        Misconception(
            "wraps-around",
            "Your shift is a `roll`, so the last position is asked for the first token. It has no "
            "next token: leave it out.",
            [_mean_of(lambda x: x, lambda tokens: tokens.roll(-1, 1))],
        ),
        Misconception(
            "flattened-before-shift",
            "You flatten first and shift then, so the last position of each sequence is asked for "
            "the first token of the next one. Shift within each sequence, then flatten.",
            [_flattened_first],
        ),
        Misconception(
            "divided-by-all",
            "You divide by batch * seq. There are batch * (seq - 1) predictions: the last position "
            "has no next token.",
            [
                lambda logits, tokens: _losses(logits, tokens).sum() / tokens.numel(),
                _of_losses(lambda losses: losses.sum() / (losses.numel() + 1)),
            ],
        ),
        Misconception(
            "no-log",
            "You take the mean of the probabilities themselves. Cross-entropy is the mean of "
            "-log p: `log_softmax` before `nll_loss`, or `cross_entropy` on the raw logits.",
            [
                _mean_of(loss=_of_probabilities),
                _mean_of(loss=lambda logits, tokens: -_of_probabilities(logits, tokens)),
                _mean_of(loss=lambda logits, tokens: 1 + _of_probabilities(logits, tokens)),
            ],
        ),
        Misconception(
            "no-softmax",
            "`nll_loss` takes log-probabilities, and yours are raw logits: `cross_entropy` is the "
            "one that takes them, or put `log_softmax` before.",
            [_mean_of(loss=functional.nll_loss)],
        ),
        Misconception(
            "wrong-sign",
            "The sign is wrong: the loss is the mean of -log p, which is never negative.",
            [_of_losses(lambda losses: -losses.mean())],
        ),
        Misconception(
            "wrong-dim",
            "Your softmax runs over the positions. It is the tokens of the vocabulary that share "
            "the probability at each position, which is the last dimension.",
            [_over_positions],
        ),
        Misconception(
            "reshaped",
            "A reshape to (batch, vocab, seq) mixes up positions and tokens: it takes a transpose. "
            "Or flatten to (batch * positions, vocab).",
            [_reshaped],
        ),
        Misconception(
            "last-position-only",
            "Your loss is that of one position alone. All of them count.",
            [
                _of_losses(lambda losses: losses[:, -1].mean()),
                _of_losses(lambda losses: losses[:, 0].mean()),
            ],
        ),
        Misconception(
            "ignores-token-0",
            "Predictions of token 0 are left out. It is a token like any other here.",
            [_mean_of(ignore_index=0)],
        ),
        Misconception(
            "perplexity",
            "What you return is the exponential of the loss (the perplexity), or its logarithm to "
            "another base. Asked for is the mean of -log p, natural logarithm.",
            [
                _of_losses(lambda losses: losses.mean().exp()),
                _of_losses(lambda losses: losses.mean() / math.log(2)),
            ],
        ),
    ],
)

# --- TinyTransformer -----------------------------------------------------------------------------


class Tiny(nn.Module):
    """The right model in parts, each of which a mistake may replace."""

    block: type[nn.Module] = CausalBlock

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
        self.blocks = nn.ModuleList(
            self.block(d_model, n_heads, d_ff, causal) for _ in range(n_layers)
        )
        self.unembed = nn.Linear(d_model, vocab_size)

    def positions(self, x: Tensor) -> Tensor:
        """What is added to embeddings x (batch, seq, d_model)."""
        return positional_encoding(x.shape[-2], x.shape[-1]).to(x.dtype)

    def read(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embed(tokens)
        return x + self.positions(x)

    def through(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x

    def said(self, x: Tensor) -> Tensor:
        logits: Tensor = self.unembed(x)
        return logits

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[-1] > self.max_len:
            raise ValueError(f"{tokens.shape[-1]} tokens are more than {self.max_len}")
        return self.said(self.through(self.read(tokens)))


FULL = "full"  # the trait of an input of max_len tokens


def model_cases(draw: Draw) -> Iterator[Posed]:
    for name, batch, seq, arguments in _models(draw):
        longest = arguments["max_len"]
        setup, (given, again, fewer, evaluated, full) = _clear_inputs(
            draw, arguments, batch, (seq, seq, max(1, seq - 1), seq, longest)
        )
        first = Posed(name, given, 1, setup=setup)
        yield first
        if name.startswith("all"):
            yield reversed_batch(first)
        at_most = once_more(first, f"{name}, max_len tokens", full)
        yield replace(at_most, traits=[FULL])
        too_many = {"tokens": draw.integers(0, arguments["vocab_size"], batch, longest + 1)}
        yield Posed(f"{name}, more than max_len tokens", too_many, setup=setup, raises=True)
        if name.startswith("all"):
            yield once_more(first, f"{name}, called again", again)
            yield once_more(first, f"{name}, called again with fewer tokens", fewer)
            yield once_more(first, f"{name}, in eval mode", evaluated, evaluating=True)
        yield Posed(
            "max_len", {}, setup=setup, probe="longest-input", outputs=["max_len"], telling=False
        )


def _clear_inputs(
    draw: Draw, arguments: dict[str, Any], batch: int, lengths: tuple[int, ...]
) -> tuple[Setup, list[dict[str, Tensor]]]:
    """Parameters, and tokens of these lengths, on which float32 can tell right from wrong."""
    while True:
        setup = Setup(arguments, draw.parameters(Tiny(**arguments)))
        model = build_module(Tiny, setup, in_double=True)
        inputs = [draw.integers(0, arguments["vocab_size"], batch, length) for length in lengths]
        if all(is_clear(model, tokens) for tokens in inputs):
            return setup, [{"tokens": tokens} for tokens in inputs]


def _models(draw: Draw) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Names, batch, sequence length, and what the models are built with."""
    sizes: list[tuple[tuple[int, ...], dict[str, bool]]] = [
        ((3, 5, 11, 4, 2, 13, 3, 9), {"causal": True}),
        ((2, 6, 7, 6, 3, 10, 2, 8), {}),
        ((4, 3, 6, 8, 2, 5, 2, 7), {"causal": False}),
    ]
    for (batch, seq, vocab, d_model, n_heads, d_ff, n_layers, max_len), flag in sizes:
        longer = int(draw.integers(0, 3))
        given = _named(vocab, d_model, n_heads, d_ff, n_layers, max_len + longer) | flag
        yield "all sizes different", batch, seq, given
    yield "one layer", 2, 3, _named(5, 6, 3, 4, 1, 4)
    yield "one token of one sequence", 1, 1, _named(4, 2, 1, 3, 2, 3)
    yield "a batch of one", 1, 4, _named(3, 4, 2, 5, 2, 6)
    yield "other sizes all equal", 4, 4, _named(4, 4, 4, 4, 2, 5)


def _named(*sizes: int) -> dict[str, Any]:
    names = ("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "max_len")
    return dict(zip(names, sizes, strict=True))


def _built_with(causal: Callable[[bool], bool]) -> type[nn.Module]:
    def block(self: Any, d: int, h: int, f: int, flag: bool) -> nn.Module:
        return CausalBlock(d, h, f, causal(flag))

    return but(Tiny, block=block)


def _free_by_default(
    self: Any, vocab: int, d: int, h: int, f: int, n: int, m: int, causal: bool = False
) -> None:
    Tiny.__init__(self, vocab, d, h, f, n, m, causal)


def _tied(self: Any, *sizes: Any, **more: Any) -> None:
    Tiny.__init__(self, *sizes, **more)
    self.unembed.weight = self.embed.weight


def _placed(positions: Callable[[Any, Tensor], Tensor]) -> type[nn.Module]:
    return but(Tiny, positions=positions)


def _angles(x: Tensor, base: float = 1e4) -> Tensor:
    """(seq, d_model / 2), float64."""
    places = torch.arange(x.shape[-2], dtype=torch.float64).unsqueeze(-1)
    return places / base ** (torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])


def _concatenated(self: Any, x: Tensor) -> Tensor:
    angles = _angles(x)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)


def _exchanged(self: Any, x: Tensor) -> Tensor:
    angles = _angles(x)
    return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(-2).to(x.dtype)


def _one_based(self: Any, x: Tensor) -> Tensor:
    return positional_encoding(x.shape[-2] + 1, x.shape[-1])[1:].to(x.dtype)


def _last_rows(self: Any, x: Tensor) -> Tensor:
    return positional_encoding(self.max_len, x.shape[-1])[-x.shape[-2] :].to(x.dtype)


def _by_sequence(self: Any, x: Tensor) -> Tensor:
    """Positions along the batch."""
    return positional_encoding(x.shape[0], x.shape[-1]).unsqueeze(1).to(x.dtype)


def _through(walk: Callable[[Any, Tensor], Tensor]) -> type[nn.Module]:
    return but(Tiny, through=walk)


def _same_block(place: int) -> type[nn.Module]:
    def walk(self: Any, x: Tensor) -> Tensor:
        for _ in self.blocks:
            x = self.blocks[place](x)
        return x

    return _through(walk)


def _each_from_the_start(self: Any, x: Tensor) -> Tensor:
    for block in self.blocks:
        result: Tensor = block(x)
    return result


def _backwards(self: Any, x: Tensor) -> Tensor:
    for block in reversed(self.blocks):
        x = block(x)
    return x


def _with_residuals(self: Any, x: Tensor) -> Tensor:
    for block in self.blocks:
        x = x + block(x)
    return x


def _placing_each_time(self: Any, x: Tensor) -> Tensor:
    for block in self.blocks:
        x = block(x + self.positions(x))
    return x


def _said(say: Callable[[Any, Tensor], Tensor]) -> type[nn.Module]:
    return but(Tiny, said=say)


TINY_TRANSFORMER = Exercise(
    id="TinyTransformer",
    points=3,
    reference=reference.TinyTransformer,
    cases=model_cases,
    outputs=["logits"],
    axes={"logits": ["position", "token"]},
    banned=["attention"],
    trait_diagnoses={FULL: "limit-off-by-one"},
    sentences={
        "limit-off-by-one": "Your model refuses an input of exactly max_len tokens, or fails on "
        "it. Only more than max_len are too many."
    },
    misconceptions=[
        Misconception(
            "no-positions",
            "The positional encodings are missing: without them the model knows no order beyond "
            "what the mask gives away. Add them to the embeddings.",
            [_placed(lambda self, x: torch.zeros_like(x))],
        ),
        Misconception(
            "never-causal",
            "Your model sees the future: its blocks are not causal. Hand the flag on to each "
            "block; it is True by default.",
            [_built_with(lambda flag: False)],
        ),
        Misconception(
            "always-causal",
            "Your model is causal with causal=False as well: hand the flag on to the blocks.",
            [_built_with(lambda flag: True)],
        ),
        Misconception(
            "causal-by-default",
            "`causal` should be True where it is not given.",
            [but(Tiny, __init__=_free_by_default)],
        ),
        Misconception(
            "shared-blocks",
            "One block is used n_layers times. Each layer has weights of its own: build a new "
            "block for each, `nn.ModuleList(TransformerBlock(...) for _ in range(n_layers))`; "
            "`[block] * n_layers` is n_layers times the same one.",
            [_same_block(0), _same_block(-1)],
        ),
        Misconception(
            "returns-probabilities",
            "You return probabilities. Asked for are the logits, as `unembed` gives them: the loss "
            "has its own softmax.",
            [
                _said(lambda self, x: self.unembed(x).softmax(-1)),
                _said(lambda self, x: self.unembed(x).log_softmax(-1)),
            ],
        ),
        Misconception(
            "scaled-embedding",
            "You scale the embeddings by sqrt(d_model). Some models do; here they are added to the "
            "encodings as they are.",
            [
                but(
                    Tiny,
                    read=lambda self, tokens: (
                        self.embed(tokens) * math.sqrt(self.embed.embedding_dim)
                        + self.positions(self.embed(tokens))
                    ),
                ),
                but(
                    Tiny,
                    read=lambda self, tokens: (
                        Tiny.read(self, tokens) * math.sqrt(self.embed.embedding_dim)
                    ),
                ),
            ],
        ),
        Misconception(
            "one-block",
            "Only one of your blocks is applied. Each layer reads what the one before it gave.",
            [_through(lambda self, x: self.blocks[0](x)), _through(_each_from_the_start)],
        ),
        Misconception(
            "no-blocks",
            "None of your blocks is applied, or their result is not used.",
            [_through(lambda self, x: x)],
        ),
        Misconception(
            "wrong-positions",
            "Your positional encodings are not the ones of topic 03, or not those of positions 0 "
            "to seq - 1. The notebook gives them as `positional_encoding`.",
            [
                *(
                    _placed(wrong)
                    for wrong in (_concatenated, _exchanged, _one_based, _last_rows, _by_sequence)
                ),
                _placed(lambda self, x: 2 * Tiny.positions(self, x)),
            ],
        ),
        Misconception(
            "positions-elsewhere",
            "The encodings are added in another place. They join the embeddings once, before the "
            "first block.",
            [
                _through(_placing_each_time),
                but(
                    Tiny,
                    read=lambda self, tokens: self.embed(tokens),
                    said=lambda self, x: self.unembed(x + self.positions(x)),
                ),
            ],
        ),
        Misconception(
            "extra-norm",
            "There is one norm too many: the last block already ends on one, and `unembed` reads "
            "what it gives.",
            [
                _said(lambda self, x: self.unembed(functional.layer_norm(x, x.shape[-1:]))),
                but(
                    Tiny,
                    read=lambda self, tokens: functional.layer_norm(
                        Tiny.read(self, tokens), (self.embed.embedding_dim,)
                    ),
                ),
            ],
        ),
        Misconception(
            "extra-residual",
            "You add something to what the blocks give. The residual connections are inside them.",
            [
                _through(_with_residuals),
                _through(lambda self, x: x + Tiny.through(self, x)),
            ],
        ),
        Misconception(
            "tied-weights",
            "Your logits come from the embedding's weights. Some models share them; here `unembed` "
            "has its own.",
            [
                _said(lambda self, x: x @ self.embed.weight.mT),
                _said(lambda self, x: x @ self.embed.weight.mT + self.unembed.bias),
                but(Tiny, __init__=_tied),
            ],
        ),
        Misconception(
            "blocks-reversed",
            "Your blocks are applied in reverse order: blocks[0] reads the embeddings.",
            [_through(_backwards)],
        ),
    ],
)

# --- train_step ----------------------------------------------------------------------------------

_SETTINGS: list[tuple[str, str, dict[str, float], bool]] = [
    ("plain SGD", "SGD", {"lr": 0.5}, False),
    ("SGD, with gradients from elsewhere", "SGD", {"lr": 0.25}, True),
    ("SGD with momentum", "SGD", {"lr": 0.25, "momentum": 0.75}, False),
    ("momentum, with gradients from elsewhere", "SGD", {"lr": 0.5, "momentum": 0.5}, True),
    ("Adam", "Adam", {"lr": 0.0625}, False),
    ("Adam, with gradients from elsewhere", "Adam", {"lr": 0.0625}, True),
]


def step_cases(draw: Draw) -> Iterator[Posed]:
    for name, optimizer, settings, stale in _SETTINGS:
        while True:
            vocab, width, batch, seq = 5, 3, *draw.sizes(2, 4, 7)
            batches = draw.integers(0, vocab, 4, batch, seq)
            weights = _weights(draw, vocab, width)
            if _are_clear(weights, batches):
                break
        arguments = {
            **weights,
            "batches": batches,
            "optimizer": optimizer,
            "settings": settings,
            "stale": stale,
        }
        outputs = ["losses", *(f"{part} after the steps" for part in ("embed", "now", "past"))]
        yield Posed(name, arguments, 1, probe="training", outputs=outputs)


def _weights(draw: Draw, vocab: int, width: int) -> dict[str, Tensor]:
    return {
        "embed": draw.normal(vocab, width),
        "now": draw.normal(width, vocab),
        "past": draw.normal(width, vocab) / 2,
    }


def _are_clear(arguments: dict[str, Tensor], batches: Tensor) -> bool:
    """Whether no gradient is so small that rounding shows in the steps of Adam, which divides each
    by its own size."""
    weights = [arguments[name].double().requires_grad_() for name in ("embed", "now", "past")]
    embed, now, past = weights
    for tokens in batches:
        x = embed[tokens]  # (batch, seq, d)
        loss = reference.next_token_loss(x @ now + x.cumsum(-2) @ past, tokens)
        gradients = torch.autograd.grad(loss, weights)
        if any(bool((gradient.abs() < 1e-3).any()) for gradient in gradients):
            return False
    return True


Step = Callable[[nn.Module, torch.optim.Optimizer, Tensor], float]


def _loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    return reference.next_token_loss(model(tokens), tokens)


def _stepping(*order: str, loss: Callable[..., Tensor] = _loss_of) -> Step:
    """A training step of these actions, in this order."""

    def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
        found = loss(model, tokens)
        before = found.item()
        for action in order:
            if action == "zero":
                optimizer.zero_grad()
            elif action == "backward":
                found.backward()
            elif action == "step":
                optimizer.step()
            elif action.startswith("clip "):
                nn.utils.clip_grad_norm_(model.parameters(), float(action.removeprefix("clip ")))
            elif action == "after":
                before = loss(model, tokens).item()
            elif action == "again":
                optimizer.zero_grad()
                loss(model, tokens).backward()
        return before

    return train_step


_RIGHT = ("zero", "backward", "step")


def _shifted_twice(model: nn.Module, tokens: Tensor) -> Tensor:
    return reference.next_token_loss(model(tokens[:, :-1]), tokens[:, 1:])


def _unshifted(model: nn.Module, tokens: Tensor) -> Tensor:
    return functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def _summed(model: nn.Module, tokens: Tensor) -> Tensor:
    return _losses(model(tokens), tokens).sum()


def _by_hand(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    """p -= lr * gradient, whatever the optimizer."""
    optimizer.zero_grad()
    loss = _loss_of(model, tokens)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(optimizer.param_groups[0]["lr"] * parameter.grad)
    return loss.item()


def _one_step_late(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    """Steps by the gradients that it finds."""
    optimizer.step()
    return _stepping("zero", "backward")(model, optimizer, tokens)


def _forgetful(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    """The optimizer begins anew in each step."""
    optimizer.state.clear()
    return _stepping(*_RIGHT)(model, optimizer, tokens)


def _with_its_own(kind: Callable[..., torch.optim.Optimizer], **settings: float) -> Step:
    """Steps of an optimizer that is made in the call."""

    def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
        return _stepping(*_RIGHT)(model, kind(model.parameters(), **settings), tokens)

    return train_step


def _row_by_row(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor) -> float:
    found = [_stepping(*_RIGHT)(model, optimizer, row.unsqueeze(0)) for row in tokens]
    return sum(found) / len(found)


TRAIN_STEP = Exercise(
    id="train_step",
    points=2,
    reference=reference.train_step,
    cases=step_cases,
    outputs=["losses"],
    banned=["attention"],
    builds_on=["next_token_loss"],
    misconceptions=[
        Misconception(
            "no-zero-grad",
            "Gradients that were there before the call count as well: `backward` adds to them. "
            "Call `optimizer.zero_grad()` before it.",
            [
                _stepping("backward", "step"),
                _stepping("backward", "step", "zero"),
            ],
        ),
        Misconception(
            "no-step",
            "The parameters do not move: `optimizer.step()` is missing, or there are no gradients "
            "when it comes. The order is zero_grad, backward, step.",
            [
                _stepping("zero", "backward"),
                _stepping("backward", "zero", "step"),
                _stepping("zero", "step"),
                _stepping("backward"),
                _stepping(),
            ],
        ),
        Misconception(
            "loss-after",
            "You return the loss after the step. Asked for is the loss before it, the one that the "
            "gradients were taken of.",
            [_stepping(*_RIGHT, "after")],
        ),
        Misconception(
            "step-before-backward",
            "The optimizer steps before the gradients of this batch are there. The order is "
            "zero_grad, backward, step.",
            [_one_step_late],
        ),
        Misconception(
            "shifted-twice",
            "You cut the tokens into inputs and targets, and `next_token_loss` shifts them once "
            "more. Hand it the logits and the tokens as they are.",
            [_stepping(*_RIGHT, loss=_shifted_twice)],
        ),
        Misconception(
            "no-shift",
            "The loss that you train on compares each position with its own token. Use "
            "`next_token_loss`, and see that it passes its own check.",
            [_stepping(*_RIGHT, loss=_unshifted)],
        ),
        Misconception(
            "summed",
            "The loss that you train on is a sum, where `next_token_loss` is a mean. Use it, and "
            "see that it passes its own check.",
            [_stepping(*_RIGHT, loss=_summed)],
        ),
        Misconception(
            "own-update",
            "You change the parameters by hand, which is plain gradient descent. What step is made "
            "is the optimizer's business (it may have momentum, or be Adam): `optimizer.step()`.",
            [_by_hand],
        ),
        Misconception(
            "new-optimizer",
            "The optimizer begins anew in each call, so its momentum is lost. Use the one that is "
            "given, as it is.",
            [
                _forgetful,
                _with_its_own(torch.optim.SGD, lr=0.1),
                _with_its_own(torch.optim.SGD, lr=0.01),
                _with_its_own(torch.optim.Adam, lr=1e-3),
                _with_its_own(torch.optim.Adam, lr=1e-2),
            ],
        ),
        Misconception(
            "several-steps",
            "Your function makes more than one step on a batch.",
            [
                _stepping(*_RIGHT, "again", "step"),
                _stepping(*_RIGHT, "again", "step", "again", "step"),
                _stepping(*_RIGHT, "step"),
                _row_by_row,
            ],
        ),
        Misconception(
            "clipped",
            "You clip the gradients. That is not asked for.",
            [_stepping("zero", "backward", f"clip {norm}", "step") for norm in (1.0, 0.5, 0.1)],
        ),
        Misconception(
            "ascent",
            "Your steps go uphill: the gradient is taken of minus the loss.",
            [
                lambda model, optimizer, tokens: (
                    -_stepping(*_RIGHT, loss=lambda *given: -_loss_of(*given))(
                        model, optimizer, tokens
                    )
                ),
                _stepping(*_RIGHT, loss=lambda *given: -_loss_of(*given)),
            ],
        ),
    ],
)

# --- generate ------------------------------------------------------------------------------------

STATE = [
    "whether gradients were recorded",
    "whether the model's mode is as before",
    "whether the parameters are as before",
    "whether requires_grad is as before",
    "whether torch still records gradients",
]


def generation_cases(draw: Draw) -> Iterator[Posed]:
    """Numbers of few digits, so that logits are exact, and equal ones are equal to the bit."""
    for name, batch, t, n_new, max_len, in_training, recording in [
        ("a short prompt", 3, 4, 5, 20, True, True),
        ("more tokens than the model reads", 4, 3, 9, 5, False, True),
        ("a prompt longer than the model reads", 3, 7, 6, 4, True, True),
        ("a model that reads one token", 3, 2, 4, 1, False, True),
        ("one new token", 4, 3, 1, 6, True, False),
        ("no new token", 2, 3, 0, 8, False, True),
        ("no new token, a long prompt", 2, 6, 0, 4, True, True),
        ("one sequence", 1, 2, 6, 9, False, False),
        ("up to just what the model reads", 5, 2, 4, 6, False, True),
    ]:
        vocab = 7 + int(draw.integers(0, 3))
        arguments = _whole_weights(draw, vocab) | {
            "max_len": max_len,
            "prompt": draw.integers(0, vocab, batch, t),
            "n_new": n_new,
            "in_training": in_training,
            "recording": recording,
        }
        yield Posed(name, arguments, 1, probe="generation", outputs=["result", *STATE])


def _whole_weights(draw: Draw, vocab: int) -> dict[str, Tensor]:
    """Two tokens with the same logits everywhere, the largest ones about half of the time."""
    width = 4
    weights = {
        "embed": (draw.normal(vocab, width) * 2).round(),
        # In steps that half precision does not have.
        "now": (draw.normal(width, vocab) * 2**8).round() / 2**7,
        "past": (draw.normal(width, vocab) * 2**8).round() / 2**7,
    }
    first, second = sorted(draw.permutation(vocab)[:2])
    for name in ("now", "past"):
        weights[name][:, first] *= 2
        weights[name][:, second] = weights[name][:, first]
    return weights


Choice = Callable[[Tensor], Tensor]


def _greedy(
    window: Callable[[Tensor, int], Tensor] = lambda tokens, most: tokens[:, -most:],
    choice: Choice = lambda logits: logits[:, -1].argmax(-1),
    result: Callable[[Tensor, int, int], Tensor] = lambda tokens, t, most: tokens,
    count: Callable[[int], int] = lambda n_new: n_new,
) -> Answer:
    """Greedy generation with one of its parts replaced."""

    @torch.no_grad()
    def generate(model: Any, prompt: Tensor, n_new: int) -> Tensor:
        tokens = prompt
        for _ in range(count(n_new)):
            chosen = choice(model(window(tokens, model.max_len)))
            tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=-1)
        return result(tokens, prompt.shape[-1], model.max_len)

    return generate


def _recording(model: Any, prompt: Tensor, n_new: int) -> Tensor:
    tokens = prompt
    for _ in range(n_new):
        logits = model(tokens[:, -model.max_len :])
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=-1)
    return tokens


def _leaving(before: Callable[[Any], Any], after: Callable[[Any], Any] = lambda model: 0) -> Answer:
    """Right but for what it does to the model, or to torch."""

    def generate(model: Any, prompt: Tensor, n_new: int) -> Tensor:
        before(model)
        result: Tensor = _greedy()(model, prompt, n_new)
        after(model)
        return result

    return generate


def _shallow(model: Any, prompt: Tensor, n_new: int) -> Tensor:
    """Puts the mode back at the top of the model alone."""
    before = model.training
    model.eval()
    result: Tensor = _greedy()(model, prompt, n_new)
    model.training = before
    return result


def _forgetting_the_mode(model: Any, prompt: Tensor, n_new: int) -> Tensor:
    """Forgets the mode where nothing is to be added."""
    before = model.training
    model.eval()
    if n_new == 0:
        return prompt
    result: Tensor = _greedy()(model, prompt, n_new)
    model.train(before)
    return result


def _cut_as_it_grows(model: Any, prompt: Tensor, n_new: int) -> Tensor:
    if n_new == 0:
        return prompt
    result: Tensor = _greedy()(model, prompt, n_new)
    return result[:, -model.max_len :]


def _from_prompt_alone(model: Any, prompt: Tensor, n_new: int) -> Tensor:
    """All new tokens from what the prompt ends on."""
    chosen = _greedy(count=lambda n: min(n, 1))(model, prompt, n_new)[:, prompt.shape[-1] :]
    return torch.cat([prompt, chosen.expand(-1, n_new)], dim=-1) if n_new else prompt


def _last_of_equals(logits: Tensor) -> Tensor:
    last = logits[:, -1]
    return last.shape[-1] - 1 - last.flip(-1).argmax(-1)


GENERATE = Exercise(
    id="generate",
    points=3,
    reference=reference.generate,
    cases=generation_cases,
    outputs=["result"],
    banned=["attention"],
    misconceptions=[
        Misconception(
            "first-position",
            "You take the logits of the first position. What comes next is said by the last one: "
            "`logits[:, -1]`.",
            [_greedy(choice=lambda logits: logits[:, 0].argmax(-1))],
        ),
        Misconception(
            "no-crop",
            "Your model is given more than max_len tokens once the sequence has grown. Hand it the "
            "last ones alone: `tokens[:, -model.max_len:]`.",
            [_greedy(window=lambda tokens, most: tokens)],
        ),
        Misconception(
            "records-gradient",
            "Gradients are recorded while you generate, which costs memory for nothing: "
            "`with torch.no_grad():`, or the decorator `@torch.no_grad()`.",
            [_recording, torch.enable_grad()(_recording)],
        ),
        Misconception(
            "mode-changed",
            "The model is in another mode after generating (train or eval). Keep "
            "`model.training`, and put it back with `model.train(...)`.",
            [
                _leaving(lambda model: model.eval()),
                _leaving(lambda model: model.eval(), lambda model: model.train()),
                _shallow,
                _forgetting_the_mode,
            ],
        ),
        Misconception(
            "only-new",
            "The prompt is missing from what you return: (batch, t + n_new), the prompt first.",
            [_greedy(result=lambda tokens, t, most: tokens[:, t:])],
        ),
        Misconception(
            "first-window",
            "You hand the model the first max_len tokens, so it never reads what it wrote itself. "
            "It is the last ones: `tokens[:, -model.max_len:]`.",
            [_greedy(window=lambda tokens, most: tokens[:, :most])],
        ),
        Misconception(
            "short-window",
            "Your model reads too few tokens: at each step it is the last max_len of them.",
            [
                _greedy(window=lambda tokens, most: tokens[:, -max(1, most - 1) :]),
                _greedy(window=lambda tokens, most: tokens[:, -1:]),
            ],
        ),
        Misconception(
            "stale-context",
            "Your new tokens do not join what the model reads: each one is chosen from the prompt "
            "and all tokens before it.",
            [_from_prompt_alone],
        ),
        Misconception(
            "last-of-equals",
            "Of equal logits you take the last. It is the first one, as `argmax` takes it.",
            [_greedy(choice=_last_of_equals)],
        ),
        Misconception(
            "least-likely",
            "You take the least likely token: it is the largest logit that wins.",
            [_greedy(choice=lambda logits: logits[:, -1].argmin(-1))],
        ),
        Misconception(
            "wrong-count",
            "The number of new tokens is not n_new: the result is (batch, t + n_new).",
            [
                _greedy(count=lambda n_new: n_new + 1),
                _greedy(count=lambda n_new: max(n_new - 1, 0)),
            ],
        ),
        Misconception(
            "cut-result",
            "What you return is cut to the window that the model reads. The window is for the "
            "model; the result keeps everything.",
            [_greedy(result=lambda tokens, t, most: tokens[:, -most:]), _cut_as_it_grows],
        ),
        Misconception(
            "requires-grad-changed",
            "The parameters' requires_grad is not as before. It need not be touched: "
            "`torch.no_grad()` is enough.",
            [
                _leaving(lambda model: model.requires_grad_(False)),
                _leaving(
                    lambda model: model.requires_grad_(False),
                    lambda model: model.requires_grad_(True),
                ),
            ],
        ),
        Misconception(
            "grad-mode-changed",
            "Whether torch records gradients is not as before: use `torch.no_grad()` as a context "
            "or a decorator, which put it back.",
            [
                _leaving(lambda model: torch.set_grad_enabled(False)),
                _leaving(lambda model: 0, lambda model: torch.set_grad_enabled(True)),
            ],
        ),
    ],
)

# --- toy_task ------------------------------------------------------------------------------------

SYMBOLS, LENGTH = 10, 8  # the sequences to be reversed; the separator is token SYMBOLS
TOY: dict[str, Any] = {
    "vocab_size": SYMBOLS + 1,
    "d_model": 32,
    "n_heads": 4,
    "d_ff": 128,
    "n_layers": 1,
    "max_len": 2 * LENGTH + 1,
}
ENOUGH = 0.95


def toy_cases(draw: Draw) -> Iterator[Posed]:
    tokens = reference.reversals(400, LENGTH, SYMBOLS, draw.generator)
    prompts, answers = tokens[:, : LENGTH + 1], tokens[:, LENGTH + 1 :]
    yield Posed(
        "fresh sequences",
        {"prompts": prompts.contiguous(), "answers": answers.contiguous()},
        1,
        probe="predictions",
        outputs=["answers"],
        expected=Outcome("sequence", [answers.contiguous()]),
    )


def generated(question: Question, response: Response) -> Response:
    """The same with what the judge's own model generates with the parameters that were sent, in
    place of what the student's said."""
    if response.plain.raised is not None:
        return response
    values = response.plain.values[1:]
    model = reference.TinyTransformer(**TOY)
    wanted = {name: list(value.shape) for name, value in model.named_parameters()}
    sent = dict(zip(response.parameters, values, strict=False))  # both in the student's order
    shapes = {name: list(value.shape) for name, value in sent.items()}
    if len(values) != len(wanted) or not response.parameters == shapes == wanted:
        told = Raised("OtherSizes", "the model's parameters are not those of the notebook's model")
        return replace(response, plain=Outcome("raised", raised=told))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(sent[name])
    prompts, answers = question.arguments["prompts"], question.arguments["answers"]
    result = reference.generate(model, prompts, answers.shape[-1])[:, prompts.shape[-1] :]
    return replace(response, plain=Outcome("sequence", [result, *values]))


TOY_TASK = Exercise(
    id="toy_task",
    points=2,
    reference=reference.TinyTransformer,
    cases=toy_cases,
    outputs=["answers"],
    misconceptions=[],
    builds_on=["TinyTransformer", "train_step", "generate"],
    sentences={
        "raised": "Your model could not be judged. Leave the sizes that it is built with as they "
        "are, and train it in the cell above.",
        "untrained": "Your model does not reverse well enough yet. Look at the loss curve: does it "
        "fall, and is it flat at its end? Then look at the checks above.",
    },
    accuracy=ENOUGH,
    examine=generated,
)

TOPIC = Topic(
    "06_training",
    [NEXT_TOKEN_LOSS, TINY_TRANSFORMER, TRAIN_STEP, GENERATE, TOY_TASK],
    public_seed=6,
)
