"""Finding banned calls as they run, in every disguise: an alias, `torch.ops`, a nested module.

Two modes watch while an answer runs. The function mode sees the Python functions of torch, the
dispatch mode the operators that they come down to. Names are compared, not objects: torch binds
the same function in many places.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


def _is_softmax(name: str) -> bool:
    return "softmax" in name or "softmin" in name or name in ("logsumexp", "special_logsumexp")


def _is_attention(name: str) -> bool:
    ready_made = ("scaled_dot_product", "multi_head_attention", "transformer_encoder_layer")
    return any(part in name for part in ready_made) or name in _FUSED


_FUSED = (
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "_cudnn_attention_forward",
    "flex_attention",
    "_triton_multi_head_attention",
)


def _is_norm(name: str) -> bool:
    """Of whatever kind or backend; not a vector's norm, `normalize` or `var_mean`."""
    return any(f"{kind}_norm" in name for kind in ("layer", "batch", "group", "instance", "rms"))


GROUPS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "softmax": ("a ready-made softmax", _is_softmax),
    "attention": ("a ready-made attention", _is_attention),
    "norm": ("a ready-made norm", _is_norm),
}


@contextmanager
def watch(groups: list[str], operators: bool = True) -> Iterator[list[str]]:
    """Within it, the list that it gives collects the names of banned calls, each once.

    Without `operators`, which cost the most to watch, Python functions alone are seen.
    """
    seen: list[str] = []
    known: set[str] = set()

    def note(name: str) -> None:
        if name not in known:
            known.add(name)
            if any(GROUPS[group][1](name) for group in groups):
                seen.append(name)

    run_thread = threading.Thread.run

    def run_watched(thread: threading.Thread) -> None:  # modes hold for one thread alone
        with _Functions(note), _Operators(note) if operators else nullcontext():
            run_thread(thread)

    with _Functions(note), _Operators(note) if operators else nullcontext():
        threading.Thread.run = run_watched  # type: ignore[method-assign, assignment]
        try:
            yield seen
        finally:
            threading.Thread.run = run_thread  # type: ignore[method-assign]


def warm_up() -> None:
    """Let torch import what watching needs, a second's worth, before any answer is timed."""
    with watch([]):
        torch.ones(1).exp()


class _Functions(TorchFunctionMode):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.note(_name_of(func))
        return func(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):
    supports_higher_order_operators = True  # such as flex_attention

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self.note = note

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.note(_name_of(func))
        return func(*args, **(kwargs or {}))


def _name_of(func: Any) -> str:
    """`softmax` for torch.softmax, F.softmax, Tensor.softmax, torch.ops.aten.softmax.int alike."""
    packet = getattr(func, "overloadpacket", func)
    return str(getattr(packet, "__name__", packet)).rpartition(".")[2]
