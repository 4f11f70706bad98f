"""The voice similarity matrix as one small picture: original | anonymized, twice."""

import base64
import struct
import zlib

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from voxrisk.report.svg import label, picture, upright
from voxrisk.results import SimilarityResult

# Nine stops of viridis (van der Walt & Smith, CC0): light means alike, also in grey print.
_STOPS = np.array(
    [(68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
     (92, 200, 99), (170, 220, 50), (253, 231, 37)],
    np.float64,
)  # fmt: skip
SIDE, LEFT, TOP = 400.0, 26.0, 24.0


def whole(similarity: SimilarityResult) -> NDArray[np.float64]:
    """``(2n, 2n)``: original with original, original with anonymized, its mirror, anonymized."""
    oo, op, pp = (
        np.asarray(part, np.float64) for part in (similarity.oo, similarity.op, similarity.pp)
    )
    return np.block([[oo, op], [op.T, pp]])


def colours(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """RGB ``(..., 3)`` of values from 0 to 1.

    >>> colours(np.array([0.0, 1.0])).tolist()
    [[68, 1, 84], [253, 231, 37]]
    """
    at = np.clip(values, 0.0, 1.0) * (len(_STOPS) - 1)
    below = np.minimum(at.astype(int), len(_STOPS) - 2)
    part = (at - below)[..., None]
    mixed = _STOPS[below] * (1.0 - part) + _STOPS[below + 1] * part
    return np.asarray(np.rint(mixed), np.uint8)


def png(pixels: NDArray[np.uint8]) -> str:
    """An RGB picture ``(height, width, 3)`` as a data URI."""
    height, width, _ = pixels.shape
    rows = np.concatenate((np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)), axis=1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def cells(matrix: NDArray[np.float64], left: float, top: float, side: float) -> list[Markup]:
    """The values as coloured cells in a square, with a colour bar at its right, 112 wide."""
    # Print shops and old viewers smooth small pictures: give them enough pixels.
    grow = max(1, round(900 / len(matrix)))
    image = png(np.kron(colours(matrix), np.ones((grow, grow, 1), np.uint8)))
    ramp = png(colours(np.linspace(1.0, 0.0, 128)[:, None]))
    parts = [
        Markup('<image x="{0}" y="{1}" width="{2}" height="{2}" preserveAspectRatio="none" '
               'href="{3}" class="pixels"/>').format(left, top, side, image),
        Markup('<image x="{0}" y="{1}" width="14" height="{2}" preserveAspectRatio="none" '
               'href="{3}" class="pixels"/>').format(left + side + 14, top, side, ramp),
    ]  # fmt: skip
    for value, word in ((1.0, "1 same voice"), (0.5, "0.5 undecided"), (0.0, "0 different")):
        y = top + side * (1.0 - value) + (8 if value == 1 else -2 if value == 0 else 4)
        parts.append(label(left + side + 32, y, word, "tick"))
    return parts


def quarters(left: float, top: float, side: float) -> list[Markup]:
    """What stands beside the four blocks, and the lines between them."""
    middle = side / 2
    parts = [
        Markup('<path d="M{0} {1}v{2}M{3} {4}h{2}" class="cut"/>').format(
            left + middle, top, side, left, top + middle
        )
    ]
    for k, words in enumerate(("original voices", "anonymized voices")):
        at = middle / 2 + k * middle
        parts.append(label(left + at, top - 8, words, "title", "middle"))
        parts.append(upright(left - 9, top + at, words))
    return parts


def heatmap(similarity: SimilarityResult) -> Markup:
    """The four blocks with a colour bar; the page's script reads single cells from its data."""
    matrix = whole(similarity)
    parts = cells(matrix, LEFT, TOP, SIDE) + quarters(LEFT, TOP, SIDE)
    parts.append(
        Markup('<rect class="cursor" x="0" y="0" width="{0:.3f}" height="{0:.3f}" '
               'visibility="hidden"/>').format(SIDE / len(matrix))
    )  # fmt: skip
    return picture(
        LEFT + SIDE + 112, TOP + SIDE + 4,
        f"Heat map of voice similarity of {len(matrix) // 2} speakers, original and anonymized. A "
        "bright diagonal in the upper right block means that anonymized voices give their owners "
        "away. The table below lists them.",
        parts, css="heat",
    )  # fmt: skip


def blocks(similarity: SimilarityResult) -> list[tuple[str, float, float]]:
    """For each block: its name, the mean of own cells, the mean of all others."""
    named = (
        ("original with original", similarity.oo),
        ("original with anonymized", similarity.op),
        ("anonymized with anonymized", similarity.pp),
    )
    found = []
    for name, table in named:
        matrix = np.asarray(table, np.float64)
        own = float(np.diag(matrix).mean())
        others = float(matrix[~np.eye(len(matrix), dtype=bool)].mean())
        found.append((name, own, others))
    return found
