"""One look for every picture: colours that survive grey print and colour blindness, quiet axes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxrisk.files.atomic import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1b1f24"
MUTED = "#6b7280"
GRID = "#e5e7eb"
TARGET = "#c2410c"
NONTARGET = "#64748b"
# Okabe and Ito's order, without the yellow that vanishes on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8b5e00", "#5b21b6")
SETTINGS: Any = {
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "figure.dpi": 100,
    "svg.hashsalt": "voxrisk",
}


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write ``name.png`` and ``name.svg``; the same picture gives the same bytes."""
    from matplotlib import rc_context

    written = []
    for ending, metadata in (("png", {"Software": "voxrisk"}), ("svg", {"Date": None})):
        path = folder / f"{name}.{ending}"
        with rc_context(SETTINGS), atomic(path) as part:
            figure.savefig(part, dpi=160, metadata=metadata)
        written.append(path)
    return written


def colour(index: int) -> str:
    """Colour of the i-th curve."""
    return COLOURS[index % len(COLOURS)]


def percent_axis(axis: Any) -> None:
    """Print fractions on an axis as percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=None))


def drawn(names: Iterable[str]) -> str:
    """A short list of names for a caption."""
    names = list(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
