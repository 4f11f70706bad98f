"""Plain SVG plots: the one way in which voxrisk draws, for pages and for files.

A plot is a list of marks on two axes. Every readable point is a ``<g class="pt">`` with its numbers
in ``data-`` attributes and its sentence in ``<title>``: browsers show it on pointing, the page's
script finds the nearest one, and tests read it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from markupsafe import Markup

from voxrisk.report import style
from voxrisk.report.lettering import TICK, TITLE, text_width

Points = Sequence[tuple[float, float]]
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction of a plot.

    Attributes:
        low: Value at the start.
        high: Value at the end.
        ticks: Values that are printed, with their text.
        title: What it measures.
        scale: ``"linear"``, ``"log"`` or ``"probit"`` (normal deviates, for error rates).
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    scale: str = "linear"

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0 to 1; what is outside goes to the nearest end."""
        low, high, at = (self._warp(v) for v in (self.low, self.high, value))
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def _warp(self, value: float) -> float:
        if self.scale == "log":
            return math.log(value)
        if self.scale == "probit":
            return _NORMAL.inv_cdf(min(max(value, 1e-6), 1.0 - 1e-6))
        return value


def percent_axis(title: str, *, low: float = 0.0, high: float = 1.0) -> Axis:
    """An axis of rates with about five ticks.

    >>> [text for _, text in percent_axis("", high=0.3).ticks]
    ['0 %', '10 %', '20 %', '30 %']
    """
    ticks = [(t, f"{100 * t:g} %") for t in round_ticks(low, high)]
    return Axis(low, high, ticks, title)


def round_ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Round numbers between two values.

    >>> round_ticks(-0.3, 2.1)
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda m: abs(math.log(m * power / raw)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def steps(edges: Sequence[float], values: Sequence[float]) -> Points:
    """The outline of a histogram: ``values[i]`` between ``edges[i]`` and ``edges[i + 1]``.

    >>> steps([0, 1, 2], [3, 4])
    [(0, 3), (1, 3), (1, 4), (2, 4)]
    """
    return [(x, v) for i, v in enumerate(values) for x in (edges[i], edges[i + 1])]


@dataclass(slots=True)
class Plot:
    """A rectangle with two axes to which marks are added; ``str(plot.svg())`` is the picture.

    Margins grow where the text of a tick would not fit. ``second`` is a further y axis at the
    right, for marks that are added with ``second=True``.
    """

    x: Axis
    y: Axis
    label: str
    width: float = 300.0
    height: float = 200.0
    left: float = 42.0
    bottom: float = 38.0
    right: float = 10.0
    top: float = 8.0
    second: Axis | None = None
    parts: list[Markup] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make room for the ticks."""
        self.left = max(self.left, _tick_room(self.y))
        if self.second:
            self.right = max(self.right, _tick_room(self.second))
        for value, words in self.x.ticks:
            share, half = self.x.share(value), text_width(words, TICK) / 2 + 1
            # What the word still has at its side is the margin and its share of the plot.
            inside = (1.0 - share) * (self.width - self.left - self.right)
            self.right = max(self.right, half - inside)

    def at(self, x: float, y: float, *, second: bool = False) -> tuple[float, float]:
        """Place of a value in the picture."""
        across = self.width - self.left - self.right
        up = self.height - self.top - self.bottom
        scale = self.second if second and self.second else self.y
        return self.left + across * self.x.share(x), self.top + up * (1.0 - scale.share(y))

    def line(
        self,
        points: Points,
        colour: str,
        *,
        width: float = 1.8,
        dash: str = "",
        second: bool = False,
    ) -> None:
        """A curve."""
        self.parts.append(
            Markup('<path class="line" d="{}" stroke="{}" stroke-width="{}"{}/>').format(
                _path([self.at(*p, second=second) for p in points]), colour, width,
                Markup(' stroke-dasharray="{}"').format(dash) if dash else "",
            )
        )  # fmt: skip

    def band(self, low: Points, high: Points, colour: str, *, opacity: float = 0.16) -> None:
        """The area between two curves."""
        corners = [self.at(*p) for p in (*low, *reversed(high))]
        self.parts.append(
            Markup('<path d="{}Z" fill="{}" fill-opacity="{}"/>').format(
                _path(corners), colour, opacity
            )
        )

    def whisker(self, first: tuple[float, float], last: tuple[float, float], colour: str) -> None:
        """An interval around a point."""
        self.parts.append(
            Markup('<path class="line" d="{}" stroke="{}" stroke-width="1.4"/>').format(
                _path([self.at(*first), self.at(*last)]), colour
            )
        )

    def point(
        self,
        x: float,
        y: float,
        colour: str,
        shape: str,
        tip: str,
        *,
        size: float = 3.4,
        **facts: Any,
    ) -> None:
        """A mark that can be read; ``facts`` become ``data-`` attributes; size 0 shows nothing."""
        px, py = self.at(x, y)
        attributes = Markup("").join(
            Markup(' data-{}="{}"').format(name.replace("_", "-"), _plain(value))
            for name, value in facts.items()
            if value is not None
        )
        drawn = mark(shape, px, py, size, colour) if size else ""
        self.parts.append(
            Markup(
                '<g class="pt" data-px="{:.1f}" data-py="{:.1f}"{}><title>{}</title>{}</g>'
            ).format(px, py, attributes, tip, drawn)
        )

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", dx: float = 0.0,
             dy: float = 0.0, css: str = "") -> None:  # fmt: skip
        """A word in the plot."""
        px, py = self.at(x, y)
        self.parts.append(label(px + dx, py + dy, words, css, anchor))

    def series(self, name: str) -> None:
        """What follows belongs to one attacker or system, until :meth:`end`."""
        self.parts.append(Markup('<g class="series" data-series="{}">').format(name))

    def end(self) -> None:
        """Close a series."""
        self.parts.append(Markup("</g>"))

    def svg(self) -> Markup:
        """The whole picture."""
        return picture(self.width, self.height, self.label, [self.body()], css="plot")

    def body(self) -> Markup:
        """Axes and marks, to be put into a larger picture."""
        return Markup("").join((*self._axes(), *self.parts))

    def _axes(self) -> Iterable[Markup]:
        right, bottom = self.width - self.right, self.height - self.bottom
        for value, words in self.y.ticks:
            _, py = self.at(self.x.low, value)
            yield Markup('<path class="grid" d="M{:.1f} {:.1f}H{:.1f}"/>').format(
                self.left, py, right
            )
            yield label(self.left - 5, py + 3.5, words, "tick", "end")
        for value, words in self.x.ticks:
            px, _ = self.at(value, self.y.low)
            yield Markup('<path class="axis" d="M{:.1f} {:.1f}v4"/>').format(px, bottom)
            yield label(px, bottom + 15, words, "tick", "middle")
        yield Markup('<path class="axis" d="M{:.1f} {:.1f}H{:.1f}"/>').format(
            self.left, bottom, right
        )
        if self.x.title:
            across = (self.left + right) / 2
            yield label(across, self.height - 5, self.x.title, "title", "middle")
        if self.y.title:
            yield upright(11, (self.top + bottom) / 2, self.y.title)
        if self.second:
            yield Markup('<path class="axis" d="M{:.1f} {:.1f}V{:.1f}"/>').format(
                right, self.top, bottom
            )
            for value, words in self.second.ticks:
                _, py = self.at(self.x.low, value, second=True)
                yield Markup('<path class="axis" d="M{:.1f} {:.1f}h4"/>').format(right, py)
                yield label(right + 6, py + 3.5, words, "tick")
            yield upright(self.width - 4, (self.top + bottom) / 2, self.second.title)


def label(x: float, y: float, words: str, css: str, anchor: str = "start") -> Markup:
    """Words in a picture."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        css, x, y, anchor, words
    )


def upright(x: float, y: float, words: str, css: str = "title", anchor: str = "middle") -> Markup:
    """Words that are read from below."""
    return Markup(
        '<text class="{}" transform="translate({:.1f} {:.1f}) rotate(-90)" text-anchor="{}">'
        "{}</text>"
    ).format(css, x, y, anchor, words)


def picture(
    width: float, height: float, label: str, parts: Iterable[Markup], *, css: str = ""
) -> Markup:
    """An SVG with a name for those who cannot see it."""
    return Markup(
        '<svg class="{}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>'
    ).format(css, width, height, label, Markup("").join(parts))


def mark(shape: str, x: float, y: float, size: float, colour: str) -> Markup:
    """One of eight shapes, so that curves differ in more than colour."""
    s = size
    if shape == "circle":
        return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}" class="mark"/>').format(
            x, y, s, colour
        )
    corners = {
        "square": ((-s, -s), (s, -s), (s, s), (-s, s)),
        "triangle": ((0, -1.3 * s), (1.2 * s, s), (-1.2 * s, s)),
        "down": ((0, 1.3 * s), (1.2 * s, -s), (-1.2 * s, -s)),
        "diamond": ((0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)),
        "pentagon": tuple(
            (1.35 * s * math.sin(k * math.pi / 2.5), -1.35 * s * math.cos(k * math.pi / 2.5))
            for k in range(5)
        ),
        "star": tuple(
            (r * s * math.sin(k * math.pi / 5), -r * s * math.cos(k * math.pi / 5))
            for k, r in enumerate((1.6, 0.65) * 5)
        ),
        "cross": tuple(
            (s * a, s * b)
            for a, b in ((0, -0.5), (0.7, -1.2), (1.2, -0.7), (0.5, 0), (1.2, 0.7), (0.7, 1.2),
                         (0, 0.5), (-0.7, 1.2), (-1.2, 0.7), (-0.5, 0), (-1.2, -0.7), (-0.7, -1.2))
        ),
    }[shape]  # fmt: skip
    return Markup('<path d="{}Z" fill="{}" class="mark"/>').format(
        _path([(x + dx, y + dy) for dx, dy in corners]), colour
    )


def key(colour: str, shape: str | None = None, *, dash: str = "") -> Markup:
    """The little picture before a word of a legend; decoration, the word says it."""
    line = Markup('<path d="M1 7H27" stroke="{}" stroke-width="2"{}/>').format(
        colour, Markup(' stroke-dasharray="{}"').format(dash) if dash else ""
    )
    shape_mark = mark(shape, 14, 7, 4, colour) if shape else ""
    return Markup(
        '<svg class="key" viewBox="0 0 28 14" width="28" height="14" aria-hidden="true">{}{}</svg>'
    ).format(line, shape_mark)


def bar(
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    chance: float | None = None,
    top: float = 1.0,
    colour: str = style.COLOURS[0],
) -> Markup:
    """A bar with its interval for a cell of a table; the number stands beside it."""
    width = 120.0

    def place(v: float) -> float:
        return width * min(max(v / top, 0.0), 1.0)

    parts = [
        Markup('<rect y="3" width="{:.1f}" height="10" fill="#eef1f4"/>').format(width),
        Markup('<rect y="3" width="{:.1f}" height="10" fill="{}" fill-opacity=".55"/>').format(
            place(value), colour
        ),
    ]
    if low is not None and high is not None:
        parts.append(
            Markup('<path d="M{:.1f} 8H{:.1f}" stroke="{}" stroke-width="1.6"/>').format(
                place(low), place(high), style.INK
            )
        )
    if chance is not None:
        parts.append(
            Markup('<path d="M{:.1f} 0V16" stroke="{}" stroke-dasharray="2 1.5"/>').format(
                place(chance), style.INK
            )
        )
    return Markup(
        '<svg class="bar" viewBox="0 0 {0:g} 16" width="{0:g}" height="16" aria-hidden="true">'
        "{1}</svg>"
    ).format(width, Markup("").join(parts))


def _path(points: Iterable[tuple[float, float]]) -> str:
    """The points to a tenth of a pixel; what falls on its neighbour is left out."""
    places = [f"{x:.1f} {y:.1f}" for x, y in points]
    return "M" + "L".join(p for i, p in enumerate(places) if not i or p != places[i - 1])


def _tick_room(axis: Axis) -> float:
    """Room beside a y axis for its ticks and its title."""
    widest = max((text_width(words, TICK) for _, words in axis.ticks), default=0.0)
    return widest + 7 + (TITLE + 5 if axis.title else 0)


def _plain(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)
