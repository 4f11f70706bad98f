"""Pictures that stand alone: panels, headings and a legend in one SVG file.

The file needs nothing else: no script, no network, no font of its own. Its words are text, its
``<title>`` and ``<desc>`` say what it shows. PNG is made from it: :mod:`voxrisk.report.png`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from voxrisk.files.atomic import atomic, write_text
from voxrisk.report import png, style
from voxrisk.report.lettering import TITLE, text_width, wrap
from voxrisk.report.svg import Plot, label, mark

EDGE, GAP, KEY = 12.0, 22.0, 38.0  # round the picture, between panels, for the key of a legend
_NAMED = 150.0  # the column that names the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a legend.

    Attributes:
        words: What the mark means.
        colour: Of line and mark.
        shape: Mark, or None.
        dash: Dashes of the line, as in SVG.
        width: Of the line; 0: there is only the mark.
        area: Opacity of an area that takes the place of the line; 0: none.
    """

    words: str
    colour: str
    shape: str | None = None
    dash: str = ""
    width: float = 1.8
    area: float = 0.0

    def key(self, x: float, y: float) -> Markup:
        """The little picture before the words, 28 wide, its middle at ``y``."""
        if self.area:
            return Markup(
                '<rect x="{:.1f}" y="{:.1f}" width="28" height="10" fill="{}" fill-opacity="{}"/>'
            ).format(x, y - 5, self.colour, self.area)
        line = Markup(
            '<path class="line" d="M{:.1f} {:.1f}h28" stroke="{}" stroke-width="{}"{}/>'
        ).format(
            x, y, self.colour, self.width,
            Markup(' stroke-dasharray="{}"').format(self.dash) if self.dash else "",
        )  # fmt: skip
        drawn = mark(self.shape, x + 14, y, 4, self.colour) if self.shape else Markup("")
        return (line if self.width else Markup("")) + drawn


@dataclass(frozen=True, slots=True)
class Figure:
    """A whole picture.

    Attributes:
        title: Its heading.
        said: What it shows, in words, for those who cannot see it.
        width: In CSS pixels (1/96 inch in print).
        height: The same.
        body: Everything below the heading.
    """

    title: str
    said: str
    width: float
    height: float
    body: Markup

    def svg(self) -> str:
        """The file."""
        return str(
            Markup(
                '<?xml version="1.0" encoding="UTF-8"?>\n'
                '<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" '
                'viewBox="0 0 {0:.0f} {1:.0f}" role="img" aria-labelledby="title said">\n'
                '<title id="title">{2}</title>\n<desc id="said">{3}</desc>\n<style>{4}</style>\n'
                '<rect width="100%" height="100%" fill="#fff"/>\n{5}\n</svg>\n'
            ).format(self.width, self.height, self.title, self.said, Markup(style.SHEET), self.body)
        )


Panel = tuple[str, Plot]


def arrange(
    title: str,
    said: str,
    rows: Sequence[Sequence[Panel]],
    *,
    legend: Sequence[Entry] = (),
    legend_title: str = "",
    names: Sequence[tuple[str, str]] = (),
) -> Figure:
    """Put panels into rows and columns, with a legend below.

    Args:
        title: Heading of the figure.
        said: What it shows, in words.
        rows: Panels (heading, plot); an empty heading takes no room.
        legend: Its entries.
        legend_title: What is written above them.
        names: For each row its name and what it means, printed at its left.
    """
    columns = [
        max(row[i][1].width for row in rows if i < len(row)) for i in range(max(map(len, rows)))
    ]
    first = EDGE + (_NAMED + GAP if names else 0.0)
    width = max(first + sum(columns) + GAP * (len(columns) - 1) + EDGE, 360.0)
    parts, y = heading(title, width)
    for i, row in enumerate(rows):
        heads = [wrap(head, 12.5, plot.width - 8, bold=True) if head else [] for head, plot in row]
        top = y + 16 * max(map(len, heads)) + 2
        x = first
        for (_, plot), lines, column in zip(row, heads, columns, strict=False):
            for k, line in enumerate(lines):
                at = top - 6 - 16 * (len(lines) - 1 - k)
                parts.append(label(x + plot.left, at, line, "head"))
            parts.append(
                Markup('<g class="panel" transform="translate({:.1f} {:.1f})">{}</g>').format(
                    x, top, plot.body()
                )
            )
            x += column + GAP
        # A panel without a title below its axis needs less room.
        tallest = max(plot.height - (0 if plot.x.title else TITLE + 4) for _, plot in row)
        if names:
            parts += _row_name(*names[i], top + tallest / 2 - 20)
        y = top + tallest + 10
    if legend:
        below, y = _legend(legend, legend_title, width, y + 6)
        parts += below
    return Figure(title, said, width, y + EDGE - 4, Markup("").join(parts))


def heading(title: str, width: float) -> tuple[list[Markup], float]:
    """The heading of a figure in as many lines as it needs, and where its panels begin."""
    lines = wrap(title, 15.0, width - 2 * EDGE, bold=True)
    drawn = [label(EDGE, 26 + 19 * k, line, "figure") for k, line in enumerate(lines)]
    return drawn, 36.0 + 19 * (len(lines) - 1)


@dataclass(frozen=True, slots=True)
class Picture:
    """The files of a figure: SVG, and PNG where it can be made (see :func:`png.obstacle`)."""

    svg: str
    png: bytes | None

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg`` and ``name.png``.

        An older ``name.png`` that cannot be made anew is removed: it would show something else.
        """
        vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
        write_text(vector, self.svg)
        if self.png is None:
            pixels.unlink(missing_ok=True)
            return [vector]
        with atomic(pixels) as part:
            part.write_bytes(self.png)
        return [vector, pixels]


def render(figure: Figure, *, draw: Callable[[str], bytes] | None = None) -> Picture:
    """The same figure gives the same bytes; PNG also depends on the fonts of the machine.

    Nearly all of it is resvg's work; ``draw`` may be a :class:`png.Painter`, so that other threads
    of this process go on.
    """
    text = figure.svg()
    if png.obstacle():
        return Picture(text, None)
    return Picture(text, (draw or png.render)(text))


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Render a figure and write it, see :meth:`Picture.save`."""
    return render(figure).save(folder, name)


def _row_name(name: str, meaning: str, y: float) -> list[Markup]:
    parts = [label(EDGE, y, name, "name")]
    for k, line in enumerate(wrap(meaning, 11.0, _NAMED)):
        parts.append(label(EDGE, y + 18 + 15 * k, line, "tick"))
    return parts


def _legend(
    entries: Sequence[Entry], title: str, width: float, y: float
) -> tuple[list[Markup], float]:
    room = width - 2 * EDGE
    widest = max(text_width(e.words, TITLE) for e in entries) + KEY + GAP
    columns = max(1, min(int((room + GAP) // widest), len(entries)))
    # The same number of entries in each column, as far as it goes.
    deep = -(-len(entries) // columns)
    columns = -(-len(entries) // deep)
    each = min(widest, room / columns)
    parts, lowest = [], y
    for k, line in enumerate(wrap(title, TITLE, room) if title else []):
        y += 15 if k else 5
        parts.append(label(EDGE, y, line, "tick"))
    start = y + (20 if title else 8)
    for i in range(columns):
        at, x = start, EDGE + i * each
        for entry in entries[i * deep : (i + 1) * deep]:
            parts.append(entry.key(x, at - 4))
            for line in wrap(entry.words, TITLE, each - KEY):
                parts.append(label(x + KEY, at, line, "title"))
                at += 15
            at += 3
        lowest = max(lowest, at - 12)
    return parts, lowest
