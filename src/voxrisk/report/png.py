"""PNG from our SVG with resvg: 3 MB, no browser, no other package (extra ``png``)."""

from functools import cache

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
