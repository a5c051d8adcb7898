"""Roundabout ways to call an answer, for what a plain call does not show.

A probe takes the answer (or the module built from it) and gives a function of the question's
arguments. What it finds out comes back as tensors, like any other result, so that the judge
compares it with the reference's and knows mistakes by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def only_building(module: nn.Module) -> Callable[[], None]:
    """That it could be built is all there is to see."""
    return lambda: None


def longest_input(module: nn.Module) -> Callable[[], Tensor]:
    """The module's `max_len`."""
    return lambda: torch.tensor(module.max_len)


def sums(answer: Callable[..., Tensor]) -> Callable[..., Any]:
    """The sums over columns and over rows of a matrix that is too large to be sent.

    -> (columns,) and (rows,), int64 where the matrix holds booleans; what came, where it is none.
    """

    def add(*given: Any, **named: Any) -> Any:
        matrix = answer(*given, **named)
        if not isinstance(matrix, Tensor) or matrix.ndim < 2:
            return matrix
        return matrix.sum(-2), matrix.sum(-1)

    return add


def change_of_the_past(module: nn.Module) -> Callable[..., Any]:
    """How outputs at the first `kept` positions differ between `x` and `other`.

    Shapes: x and other (..., seq, d_model), the same at the first `kept` positions
    -> (..., kept, d_model), exactly 0 throughout where no output depends on later positions.
    """

    def change(x: Tensor, other: Tensor, kept: int) -> Any:
        first, second = module(x), module(other)
        if not isinstance(first, Tensor) or not isinstance(second, Tensor):
            return first
        return first[..., :kept, :] - second[..., :kept, :]

    return change


class NextTokenModel(nn.Module):
    """A causal model as simple as can be, on which training and generating are tried.

    The logits at a position are linear in the embedding there and in the sum of all up to there
    (if not `causal`, of all: then what is padded behind the last token shows in its logits).
    Shapes: tokens (batch, seq) -> logits (batch, seq, vocab); ValueError beyond `max_len`.
    """

    def __init__(
        self, embed: Tensor, now: Tensor, past: Tensor, max_len: int, causal: bool = True
    ) -> None:
        super().__init__()
        self.causal = causal
        self.embed = nn.Parameter(embed.detach().clone())  # (vocab, d)
        self.now = nn.Parameter(now.detach().clone())  # (d, vocab)
        self.past = nn.Parameter(past.detach().clone())  # (d, vocab)
        self.inner = nn.Identity()  # has a mode of its own
        self.max_len = max_len
        self.recorded = False  # whether a gradient could be had from some logits

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.shape[-1] > self.max_len:
            raise ValueError(
                f"{tokens.shape[-1]} tokens, but the model reads at most {self.max_len}"
            )
        x = self.inner(self.embed[tokens])  # (batch, seq, d)
        read = x.cumsum(dim=-2) if self.causal else x.sum(dim=-2, keepdim=True).expand_as(x)
        logits: Tensor = x @ self.now + read @ self.past  # (batch, seq, vocab)
        self.recorded |= logits.requires_grad
        return logits


def training(step: Callable[..., Any]) -> Callable[..., Any]:
    """Several steps of training, one for each batch of `batches` (steps, batch, seq).

    `stale`: gradients from elsewhere are there before each step. -> the losses (steps,) and the
    parameters after the last step; what `step` gave, where that is no number.
    """

    def train(
        embed: Tensor,
        now: Tensor,
        past: Tensor,
        batches: Tensor,
        optimizer: str,
        settings: dict[str, float],
        stale: bool,
    ) -> Any:
        model = NextTokenModel(embed, now, past, batches.shape[-1])
        optimizers = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}
        descent = optimizers[optimizer](model.parameters(), **settings)
        losses = []
        for number, tokens in enumerate(batches):
            if stale:
                for parameter in model.parameters():
                    parameter.grad = torch.ones_like(parameter)
            if number % 2:
                loss = step(model=model, optimizer=descent, tokens=tokens)
            else:
                loss = step(model, descent, tokens)
            if not isinstance(loss, float):
                return loss
            losses.append(loss)
        return (torch.tensor(losses, dtype=embed.dtype), *model.parameters())

    return train


def generation(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Generating from `prompt` (batch, t), and what it left behind.

    -> (batch, t + n_new), and as single booleans: whether a gradient was recorded, the model's
    mode is as before, whether parameters and their requires_grad are as before, torch's mode.
    """

    def run(
        embed: Tensor,
        now: Tensor,
        past: Tensor,
        max_len: int,
        prompt: Tensor,
        n_new: int,
        in_training: bool,
        recording: bool,
    ) -> Any:
        model = NextTokenModel(embed, now, past, max_len, causal=False).train(in_training)
        model.embed.requires_grad_(in_training)  # not all parameters need be trained
        with torch.set_grad_enabled(recording):
            if n_new % 2:
                result = generate(model, prompt, n_new)
            else:
                result = generate(model=model, prompt=prompt, n_new=n_new)
            still_recording = torch.is_grad_enabled()
        if not isinstance(result, Tensor):
            return result
        kept = zip((model.embed, model.now, model.past), (embed, now, past), strict=True)
        trainable = [parameter.requires_grad for parameter in model.parameters()]
        flags = [
            model.recorded,
            all(part.training == in_training for part in model.modules()),
            all(torch.equal(parameter, before) for parameter, before in kept),
            trainable == [in_training, True, True],
            still_recording,
        ]
        return (result, *map(torch.tensor, flags))

    return run


def predictions(model: nn.Module) -> Callable[[Tensor, Tensor], Any]:
    """What a trained model says next, having read each prompt and the right answer so far.

    Shapes: prompts (batch, t), answers (batch, n) -> (batch, n) int64, and all parameters. A causal
    model generates an answer rightly just where all of these are right.
    """

    def predict(prompts: Tensor, answers: Tensor) -> Any:
        said = []
        with torch.no_grad():
            for count in range(answers.shape[-1]):
                read = torch.cat([prompts, answers[:, :count]], dim=-1)
                said.append(model(read)[:, -1].argmax(-1))
        return (torch.stack(said, dim=-1), *model.parameters())

    return predict


UNWATCHED = ("sums",)  # more operations than there is time to watch

PROBES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "only-building": only_building,
    "longest-input": longest_input,
    "sums": sums,
    "change-of-the-past": change_of_the_past,
    "training": training,
    "generation": generation,
    "predictions": predictions,
}
