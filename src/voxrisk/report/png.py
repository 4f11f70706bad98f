"""PNG from our SVG with resvg: 3 MB, no browser, no other package (extra ``png``)."""

import subprocess
import sys
from functools import cache

from voxrisk.types import MissingExtraError, require

ZOOM = 2.0  # pixels for each CSS pixel: 192 to the inch, and every hairline whole
_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><style>{}</style>'
    '<text x="2" y="16">{}</text></svg>'
)

_CHILD = (
    "import sys, resvg_py; svg = sys.stdin.buffer.read().decode(); "
    "sys.stdout.buffer.write(bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=float(sys.argv[1]))))"
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


def render_apart(svg: str) -> bytes:
    """As :func:`render`, in a process of its own.

    While resvg draws, no other thread of its process runs: it does not let go of the interpreter.
    A thread that waits for another process does.
    """
    command = [sys.executable, "-P", "-c", _CHILD, str(ZOOM)]
    try:
        done = subprocess.run(command, input=svg.encode(), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return render(svg)  # what starts us may be no Python; what is wrong is said from here
    return done.stdout
