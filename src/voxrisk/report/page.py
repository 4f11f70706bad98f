"""What both pages share: templates with escaping on, the script, and the data it reads."""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, UndefinedError
from markupsafe import Markup

from voxrisk import __version__
from voxrisk.files.atomic import write_text
from voxrisk.report import words
from voxrisk.report.svg import bar, key
from voxrisk.types import InputError


def embedded(data: Any) -> Markup:
    r"""JSON that no text inside it can end early: ``<``, ``>``, ``&`` and line separators escaped.

    >>> embedded({"speaker": "</script>"})
    Markup('{"speaker":"\\u003c/script\\u003e"}')
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def packed(files: Mapping[str, str]) -> str:
    """Files for the page's buttons: JSON, deflated, base64. The script unpacks it when asked.

    >>> len(packed({"a.csv": "x" * 10_000})) < 200
    True
    """
    text = json.dumps(files, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def write_page(path: Path, template: str, data: Any, context: Mapping[str, Any]) -> None:
    """Fill a template and write it whole.

    The page forbids itself every request: its policy allows only its own script, by hash.
    """
    loader = PackageLoader("voxrisk.report", "templates")
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.globals.update(
        bar=bar, bounds=words.bounds, count=words.count, estimate=words.estimate,
        figure=words.figure, interval=words.interval, key=key, one_in=words.one_in,
        percent=words.percent, sentence=words.sentence, coded=words.coded,
        points=words.points, p_text=words.p_text,
    )  # fmt: skip
    script = _source(loader, pages, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    try:
        html = pages.get_template(template).render(
            {
                "css": Markup(_source(loader, pages, "page.css")),
                "script": Markup(script),
                "script_hash": f"sha256-{digest}",
                "version": __version__,
                "data": embedded(data),
                **context,
            }
        )
    except UndefinedError as error:
        raise InputError(
            f"results.json is not complete ({error}); evaluate again with this version of voxrisk"
        ) from error
    write_text(path, html)


def _source(loader: PackageLoader, pages: Environment, name: str) -> str:
    return loader.get_source(pages, name)[0]
