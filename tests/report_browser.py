"""A real headless Chromium for the tests of the pages, and what they ask it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from voxrisk.report.pdf import find_browser

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, or the reason to skip."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the package playwright is missing: pip install playwright"
    )
    program = find_browser()
    if program is None:
        pytest.skip("Chromium is missing: install it (Debian: apt install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page and everything it said or asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # what got past the page's own policy


@contextmanager
def opened(
    browser: Any, path: Path, *, width: int = 1280, height: int = 900, script: bool = True
) -> Iterator[Watched]:
    """Open a file; what leaves it is stopped and written down."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, java_script_enabled=script
    )
    page = context.new_page()
    seen = Watched(page)
    page.on("console", lambda message: seen.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.said.append(str(error)))
    page.on("dialog", lambda dialog: (seen.said.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.route("**/*", lambda route: _only_files(route, seen))
    page.goto(path.resolve().as_uri())
    yield seen
    context.close()


def _only_files(route: Any, seen: Watched) -> None:
    if route.request.url.startswith(("file:", "data:")):
        route.continue_()
    else:
        seen.left.append(route.request.url)
        route.abort()


# Every text that can be seen, with its contrast against what lies behind it.
CONTRAST = """() => {
  const light = c => c <= 10.01 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4;
  const level = ([r, g, b]) => .2126 * light(r) + .7152 * light(g) + .0722 * light(b);
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const behind = node => {
    for (let e = node; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > .99) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !e.getClientRects().length) continue;
    if (['TITLE', 'SCRIPT', 'OPTION'].includes(e.tagName.toUpperCase())) continue;
    const css = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? css.fill : css.color);
    const a = level(ink), b = level(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    found.push([ratio, walk.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""
# Where each readable point of a panel lies on the scale of its own y ticks: (series, l, n, share).
DRAWN = """metric => [...document.querySelectorAll(`.pt[data-metric="${metric}"]`)].map(g => {
  const svg = g.closest('svg');
  const y = [...svg.querySelectorAll('path.grid')].map(p => +p.getAttribute('d').split(/[MH ]/)[2]);
  const box = g.querySelector('.mark').getBBox();
  const text = [...svg.querySelectorAll('text.tick')].map(t => t.textContent);
  return [g.parentNode.dataset.series, +g.dataset.l, +g.dataset.n, +g.dataset.value,
          (Math.max(...y) - (box.y + box.height / 2)) / (Math.max(...y) - Math.min(...y)),
          text.includes('0 %') && text.includes('100 %'), +g.dataset.py];
})"""
