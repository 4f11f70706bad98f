"""PNG from our SVG with resvg: 3 MB, no browser, no other package (extra ``png``)."""

import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from queue import SimpleQueue
from types import TracebackType

from voxrisk.types import MissingExtraError, cores, require

ZOOM = 2.0  # pixels for each CSS pixel: 192 to the inch, and every hairline whole
_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><style>{}</style>'
    '<text x="2" y="16">{}</text></svg>'
)

# A message is 8 bytes that say how long it is, and itself. The first picture loads the fonts.
_CHILD = """
import sys, resvg_py
draw = lambda svg: bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=float(sys.argv[1])))
draw(sys.argv[2])
while size := sys.stdin.buffer.read(8):
    png = draw(sys.stdin.buffer.read(int.from_bytes(size)).decode())
    sys.stdout.buffer.write(len(png).to_bytes(8) + png)
    sys.stdout.buffer.flush()
"""


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


class Painter:
    """As :func:`render`, by processes of its own that are ready for the next picture.

    While resvg draws, no other thread of its process runs: it does not let go of the interpreter.
    A thread that waits for another process does. There are as many processes as ``hands``; on a
    single core there is none, and pictures are drawn here.
    """

    def __init__(self, hands: int = 2) -> None:
        self.hands = hands
        self._children: list[subprocess.Popen[bytes]] = []
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        if cores() == 1 or find_spec("resvg_py") is None:
            return
        command = [sys.executable, "-P", "-c", _CHILD, str(ZOOM), _PROBE.format("", "M")]
        pipe = subprocess.PIPE
        for _ in range(hands):
            with suppress(OSError):  # what starts us may be no Python
                child = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
                )
                self._children.append(child)
                self._free.put(child)

    def __call__(self, svg: str) -> bytes:
        """The picture as PNG; drawn here if the other processes cannot."""
        if self._children:
            child = self._free.get()
            drawn = _asked(child, svg.encode())
            self._free.put(child)
            if drawn:
                return drawn
        return render(svg)

    def __enter__(self) -> "Painter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        for child in self._children:
            if kind is not None:
                child.kill()
            with suppress(OSError):
                child.communicate()


def _asked(child: "subprocess.Popen[bytes]", message: bytes) -> bytes:
    """What the other process answers; nothing if it is gone."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(len(message).to_bytes(8) + message)
        child.stdin.flush()
        size = int.from_bytes(child.stdout.read(8))
        answer = child.stdout.read(size)
    except OSError:
        return b""
    return answer if len(answer) == size else b""
