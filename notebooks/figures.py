"""The pictures of the lessons: one style, and the few kinds of figure that come again and again.

Colours are those of Okabe and Ito, which stay apart for the colour-blind; curves differ in marker
and dash as well, so that nothing hangs on colour alone. Figures are drawn on white, whatever the
theme of the page around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import torch
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PINK, SKY, YELLOW, GREY = "#AA4C86", "#3A9BD9", "#B8860B", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW)
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))

WIDE = 7.2  # inches, the width of a page; a narrow window shrinks it

STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}


def use_style() -> None:
    """Draw everything that follows in the style of the lessons, on one thread."""
    torch.set_num_threads(1)  # the tensors are small; more threads would not help
    plt.rcParams.update(STYLE)


def slider(draw: Callable[..., None], **controls: Any) -> None:
    """The figure that `draw` makes, drawn anew whenever one of the controls moves.

    Controls are widgets, or what ipywidgets.interactive makes one of. The figure is an image, not
    an output: a notebook that is run without a front end prints the same as one that is read.
    """
    chosen = ipywidgets.interactive(lambda **settings: None, **controls).children[:-1]
    picture = ipywidgets.Image(format="png")

    def redraw(*_: Any) -> None:
        picture.value = _drawn(
            draw, {name: c.value for name, c in zip(controls, chosen, strict=True)}
        )

    for control in chosen:
        control.observe(redraw, "value")
    redraw()
    bundle = ipywidgets.VBox([*chosen, picture])._repr_mimebundle_()
    display(bundle | {"text/plain": f"a control of: {', '.join(controls)}"}, raw=True)


def _drawn(draw: Callable[..., None], settings: dict[str, Any]) -> bytes:
    """The PNG of a figure, which is not shown."""
    show, file = plt.show, BytesIO()
    plt.show = lambda: None
    try:
        draw(**settings)
        plt.gcf().savefig(file, format="png")
    finally:
        plt.show = show
        plt.close("all")
    return file.getvalue()


# ---- heat maps


def attention_map(
    ax: Axes,
    weights: Tensor,
    tokens: Sequence[str] | None = None,
    title: str = "",
    *,
    keys: Sequence[str] | None = None,
    largest: float = 1.0,
    numbers: bool | None = None,
) -> AxesImage:
    """Weights (queries, keys) with tokens on both axes; small maps show the numbers too.

    `tokens` names the rows, and the columns unless `keys` does; `largest` ends the colour scale.
    """
    n_queries, n_keys = weights.shape
    rows = list(tokens or range(n_queries))
    columns = list(keys or tokens or range(n_keys))
    image = ax.imshow(weights.detach(), cmap="cividis", vmin=0, vmax=largest)
    turned = 45 if max(len(str(name)) for name in columns) > 2 else 0
    ax.set_xticks(range(n_keys), columns, rotation=turned, ha="right" if turned else "center")
    ax.set_yticks(range(n_queries), rows)
    ax.set(xlabel="attended to (key)", ylabel="attending (query)", title=title)
    ax.spines[:].set_visible(False)
    if numbers if numbers is not None else max(weights.shape) <= 8:
        write_numbers(ax, weights, bright=largest / 2)
    return image


def attention_maps(
    weights: Iterable[Tensor],
    tokens: Sequence[str] | None = None,
    titles: Iterable[str] = (),
    *,
    largest: float = 1.0,
    numbers: bool | None = None,
    keys: Sequence[str] | None = None,
) -> None:
    """Several maps in a row on one colour scale, such as the heads of a layer."""
    maps = list(weights)
    width = min(3.4, 10.2 / len(maps))
    size = (width * len(maps) + 0.9, width + 0.75)
    fig, axes = plt.subplots(1, len(maps), figsize=size, squeeze=False)
    names = list(titles) or [f"head {h}" for h in range(len(maps))]
    for ax, one, name in zip(axes[0], maps, names, strict=True):
        image = attention_map(ax, one, tokens, name, keys=keys, largest=largest, numbers=numbers)
        if ax is not axes[0, 0]:
            ax.set(ylabel="", yticks=[])
    fig.colorbar(image, ax=axes, label="weight (share of the row)", shrink=0.8)
    plt.show()


def matrix(
    ax: Axes,
    values: Tensor,
    title: str = "",
    *,
    rows: str = "",
    columns: str = "",
    label: str = "",
    limit: float | None = None,
    digits: int | None = None,
) -> AxesImage:
    """Numbers of either sign, (rows, columns), white at 0; `digits` writes each one down."""
    most = limit or max(values.detach().abs().max().item(), 1e-12)
    image = ax.imshow(values.detach(), cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
    ax.set(xlabel=columns, ylabel=rows, title=title)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.spines[:].set_visible(False)
    if digits is not None:
        write_numbers(ax, values, digits=digits, dark=0.6 * most)
    if label:
        ax.figure.colorbar(image, ax=ax, label=label)
    return image


def write_numbers(
    ax: Axes,
    values: Tensor,
    *,
    bright: float = -math.inf,
    dark: float = math.inf,
    digits: int = 2,
) -> None:
    """Each number into its square; black from `bright` on, white again from `dark` on in size."""
    for row, numbers in enumerate(values.tolist()):
        for column, number in enumerate(numbers):
            ink = "black" if number >= bright and abs(number) < dark else "white"
            text = f"{round(number, digits) + 0:.{digits}f}"  # + 0 turns -0.00 into 0.00
            ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=8.5)


# ---- curves


def curves(
    ax: Axes,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    points: bool = True,
    **settings: Any,
) -> None:
    """Named curves (x, y), each with a colour, dash and marker of its own, and a legend.

    `points` marks what was measured; `settings` go to the axes (xlabel, yscale, title, ...).
    """
    marks = MARKERS if points else [""] * len(MARKERS)
    styles = zip(COLOURS, DASHES, marks, strict=True)
    for (name, (x, y)), (colour, dash, mark) in zip(series.items(), styles, strict=False):
        ax.plot(x, y, color=colour, ls=dash, marker=mark, label=name)
    ax.set(**settings)
    if len(series) > 1:
        ax.legend()


# ---- shapes


def shape_flow(steps: Sequence[tuple[str, str, str]], title: str = "") -> None:
    """Tensors as boxes from left to right, in lines: what is done, its name, its shape.

    The first step's operation is where it comes from, and may be empty.
    """
    in_line = 4
    lines = -(-len(steps) // in_line)
    _, ax = plt.subplots(figsize=(WIDE + 1.4, 1.35 * lines + (0.4 if title else 0.1)))
    for number, (operation, name, shape) in enumerate(steps):
        line, place = divmod(number, in_line)
        x, y = place * 2.5, -line * 1.5
        box = FancyBboxPatch(
            (x, y), 1.25, 0.72, "round,pad=0.08", facecolor="#E8F1F8", edgecolor=BLUE
        )
        ax.add_patch(box)
        ax.text(x + 0.62, y + 0.5, name, ha="center", va="center", weight="bold")
        ax.text(x + 0.62, y + 0.18, shape, ha="center", va="center", fontsize=9)
        if operation and number:
            ax.annotate(
                "",
                (x - 0.1, y + 0.36),
                (x - 1.1 if place else x - 0.55, y + 0.36),
                arrowprops={"arrowstyle": "-|>", "color": GREY},
            )
        if operation:
            left = x - (0.6 if place else 0.35)
            ax.text(left, y + 0.78, operation, ha="center", va="bottom", fontsize=8.5, color=GREY)
    ax.set(xlim=(-0.8, in_line * 2.5 - 1.0), ylim=(-(lines - 1) * 1.5 - 0.2, 1.15), title=title)
    ax.axis("off")
    plt.show()
