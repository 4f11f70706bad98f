"""One look for every picture: colours that survive grey print and colour blindness, quiet axes."""

from collections.abc import Iterable

from voxrisk.knowledge import ATTACKERS

INK = "#1b1f24"
MUTED = "#6b7280"
GRID = "#e5e7eb"
TARGET = "#c2410c"
NONTARGET = "#64748b"
# Okabe and Ito's order, without the yellow that vanishes on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8b5e00", "#5b21b6")
MARKS = ("circle", "square", "triangle", "diamond", "cross", "down")
# One colour and one mark for each attacker, the same in every figure of every report.
USUAL = {k.name: (k.colour, k.mark) for k in ATTACKERS.values()}
# What a file of its own needs beside the marks; the pages have the same in page.css. The first four
# families have the same widths.
SHEET = f"""\
text {{ font-family: "Liberation Sans", Arimo, Arial, Helvetica, "DejaVu Sans", "Noto Sans", \
"Segoe UI", Roboto, Ubuntu, Cantarell, sans-serif; font-size: 11.5px; fill: {INK}; }}
text.tick {{ fill: {MUTED}; font-size: 11px; }}
text.small {{ fill: {MUTED}; font-size: 8px; }}
text.head {{ font-weight: bold; font-size: 12.5px; }}
text.name {{ font-weight: bold; font-size: 13.5px; }}
text.figure {{ font-weight: bold; font-size: 15px; }}
.grid {{ stroke: {GRID}; stroke-width: 1; fill: none; }}
.axis {{ stroke: {MUTED}; stroke-width: 1; fill: none; }}
.line {{ fill: none; stroke-linejoin: round; stroke-linecap: round; }}
.mark {{ stroke: #fff; stroke-width: .9; }}
.cut {{ stroke: #fff; stroke-width: 2; }}
.pixels {{ image-rendering: pixelated; }}
"""


def colour(index: int) -> str:
    """Colour of the i-th curve."""
    return COLOURS[index % len(COLOURS)]


def looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and mark of each: attackers have their own, others get what is left.

    >>> looks(["original", "B1"])
    {'original': ('#1b1f24', 'circle'), 'B1': ('#0072b2', 'square')}
    """
    names = list(names)
    taken = [USUAL[name] for name in names if name in USUAL]
    colours = [c for c in COLOURS if c not in {t[0] for t in taken}] or list(COLOURS)
    marks = [m for m in MARKS if m not in {t[1] for t in taken}] or list(MARKS)
    others = [name for name in names if name not in USUAL]
    free = {n: (colours[i % len(colours)], marks[i % len(marks)]) for i, n in enumerate(others)}
    return {name: USUAL.get(name) or free[name] for name in names}
