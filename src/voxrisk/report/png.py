"""PNG from our SVG with resvg: 3 MB, no browser, no other package (extra ``png``)."""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

from voxrisk.shards import worker_count
from voxrisk.types import MissingExtraError, require

ZOOM = 2.0  # pixels for each CSS pixel: 192 to the inch, and every hairline whole
_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><style>{}</style>'
    '<text x="2" y="16">{}</text></svg>'
)


@cache
def obstacle() -> str | None:
    """Why no PNG can be made here, and the way out; None if it can.

    A renderer without fonts leaves all words out and says nothing, so that is tried.
    """
    from voxrisk.report.style import SHEET

    try:
        written, empty = (render(_PROBE.format(SHEET, word)) for word in ("M", ""))
    except MissingExtraError:
        return "PNG pictures need one more package: pip install 'voxrisk[png]'"
    if written == empty:
        return (
            "no PNG pictures: no sans-serif font is installed (Debian: apt install "
            "fonts-liberation)"
        )
    return None


def render(svg: str) -> bytes:
    """The picture as PNG.

    Raises:
        MissingExtraError: If resvg is not installed.
    """
    require("resvg_py", extra="png")
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM))


# What a second process does: SVG in, PNG out, both as JSON. It needs resvg and nothing of ours.
_CHILD = """
import base64, json, sys, resvg_py
zoom, svgs = json.load(sys.stdin)
made = [bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=zoom)) for svg in svgs]
json.dump([base64.b64encode(png).decode() for png in made], sys.stdout)
"""


def render_all(svgs: Sequence[str]) -> list[bytes]:
    """Several pictures as PNG, half of them by another process: resvg keeps a process to one core.

    Raises:
        MissingExtraError: If resvg is not installed.
    """
    if len(svgs) < 2 or worker_count() < 2 or not sys.executable:
        return [render(svg) for svg in svgs]
    longest = sorted(range(len(svgs)), key=lambda i: -len(svgs[i]))
    theirs = [i for place, i in enumerate(longest) if place % 4 in (1, 2)]
    command = [sys.executable, "-c", _CHILD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        found = {}
        try:
            json.dump([ZOOM, [svgs[i] for i in theirs]], child.stdin)
            child.stdin.close()
            found = {i: render(svgs[i]) for i in longest if i not in theirs}
            made = json.load(child.stdout)
            found |= {i: base64.b64decode(png) for i, png in zip(theirs, made, strict=True)}
        except (OSError, ValueError):  # it could not, whatever the reason: then all of it here
            found = {i: found.get(i) or render(svg) for i, svg in enumerate(svgs)}
    return [found[i] for i in range(len(svgs))]
