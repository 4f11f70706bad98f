"""A hook of mkdocs: formulas become MathML while the site is built, so that readers need no script.

arithmatex marks each formula; what browsers draw themselves takes its place.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(text: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(_mathml, text)


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found["open"] == "[" else "inline"
    latex = html.unescape(found["latex"]).strip()
    return convert(latex, display=display)
