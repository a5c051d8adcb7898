"""What topic 06 promises of its toy task: ten seeds of the reference, and three ablations.

Run it with `python benchmarks/toy_task.py`; it takes about three minutes on one core. Whole answers
are counted on fresh sequences; the loss is that of the answer's half, in nats per token.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from autograder.exercises.training import LENGTH, SYMBOLS, TOY
from solutions import training
from solutions.causal_mask import TransformerBlock
from solutions.training import TinyTransformer, generate, reversals, train_step

STEPS, BATCH, RATE = 800, 64, 3e-3
SEEDS, ABLATION_SEEDS = range(10), range(3)
FRESH = 1000  # sequences


class WithoutResiduals(TransformerBlock):
    def forward(self, x: Tensor) -> Tensor:
        attended: Tensor = self.norm1(self.attn(x))
        fed: Tensor = self.norm2(self.ff(attended))
        return fed


def without_positions() -> TinyTransformer:
    model = TinyTransformer(**TOY)
    model.encodings.zero_()
    return model


def without_residuals() -> TinyTransformer:
    whole = training.TransformerBlock
    training.TransformerBlock = WithoutResiduals  # type: ignore[misc]
    try:
        return TinyTransformer(**TOY)
    finally:
        training.TransformerBlock = whole  # type: ignore[misc]


MODELS: dict[str, Callable[[], TinyTransformer]] = {
    "as it is": lambda: TinyTransformer(**TOY),
    "no positional encoding": without_positions,
    "no causal mask": lambda: TinyTransformer(**TOY, causal=False),
    "no residual connections": without_residuals,
}


@dataclass(frozen=True)
class Trained:
    loss: float  # of the whole sequence, mean of the last 50 steps
    answer_loss: float
    forced: float  # share of answer tokens right where the right ones before are given
    whole: float  # share of whole generated answers right
    seconds: float


def train(build: Callable[[], nn.Module], seed: int) -> Trained:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model: Any = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    started = time.process_time()
    losses = []
    for _ in range(STEPS):
        losses.append(train_step(model, optimizer, reversals(BATCH, LENGTH, SYMBOLS, generator)))
    seconds = time.process_time() - started
    tokens = reversals(FRESH, LENGTH, SYMBOLS, torch.Generator().manual_seed(10_000 + seed))
    answers = tokens[:, LENGTH + 1 :]
    with torch.no_grad():
        logits = model(tokens)[:, LENGTH:-1]
    said = generate(model, tokens[:, : LENGTH + 1], LENGTH)[:, LENGTH + 1 :]
    return Trained(
        loss=sum(losses[-50:]) / 50,
        answer_loss=float(functional.cross_entropy(logits.flatten(0, 1), answers.flatten())),
        forced=float((logits.argmax(-1) == answers).double().mean()),
        whole=float((said == answers).all(-1).double().mean()),
        seconds=seconds,
    )


def main() -> None:
    torch.set_num_threads(1)
    console = Console()
    seeds = Table("seed", "training, CPU s", "whole answers right", title="The reference")
    for seed in SEEDS:
        result = train(MODELS["as it is"], seed)
        seeds.add_row(str(seed), f"{result.seconds:.1f}", f"{result.whole:.2%}")
    console.print(seeds)
    ablations = Table(
        *("model", "seed", "training loss", "loss on answers"),
        *("teacher-forced", "whole answers right"),
        title="Ablations",
    )
    for name, build in MODELS.items():
        for seed in ABLATION_SEEDS:
            result = train(build, seed)
            shares = [f"{result.forced:.1%}", f"{result.whole:.1%}"]
            losses = [f"{result.loss:.3f}", f"{result.answer_loss:.4f}"]
            ablations.add_row(name, str(seed), *losses, *shares)
    console.print(ablations)


if __name__ == "__main__":
    main()
