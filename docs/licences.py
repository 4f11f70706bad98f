"""Write ``docs/licences.md``: the licence of every package that voxrisk can bring along.

    python docs/licences.py

The packages are those of pyproject.toml, and what these need in turn; licences are read from the
metadata of what is installed, so run it where `make test` has set everything up.
"""

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
FOR_DEVELOPMENT = ("test", "lint", "docs")
# Spellings of licence fields and classifiers, as SPDX has them; the first that fits counts.
SPDX = (
    (r"apache", "Apache-2.0"),
    (r"mozilla|mpl", "MPL-2.0"),
    (r"lesser general public|lgpl", "LGPL"),
    (r"affero|agpl", "AGPL"),
    (r"general public license v3|gplv3|gpl-3", "GPL-3.0"),
    (r"general public|gpl", "GPL"),
    (r"isc", "ISC"),
    (r"python software|psf", "PSF-2.0"),
    (r"unlicense", "Unlicense"),
    (r"3-clause|new bsd|bsd-3", "BSD-3-Clause"),
    (r"2-clause|simplified bsd|bsd-2", "BSD-2-Clause"),
    (r"bsd|redistribution and use in source", "BSD"),
    (r"\bmit\b|permission is hereby granted", "MIT"),
    (r"zlib", "Zlib"),
    (r"public domain", "public domain"),
)

# What the metadata does not tell: libraries inside of wheels.
CARRIED = {
    "av": "carries FFmpeg, under the LGPL or GPL as it was built",
    "espeakng-loader": "carries espeak-ng, GPL-3.0-or-later",
    "soundfile": "carries libsndfile, LGPL-2.1-or-later",
}


def direct() -> dict[str, set[str]]:
    """Package → the extras that ask for it; the package itself is called ``voxrisk``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"voxrisk": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, set[str]] = {}
    for extra, lines in asked.items():
        for line in lines:
            name = canonicalize_name(Requirement(line).name)
            if name != "voxrisk":
                found.setdefault(name, set()).add(extra)
    return found


def needed(first: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same with what these packages need in turn, on this platform."""
    found = {name: set(extras) for name, extras in first.items()}
    todo = list(found)
    while todo:
        name = todo.pop()
        for line in (installed.requires or ()) if (installed := package(name)) else ():
            wanted = Requirement(line)
            other = canonicalize_name(wanted.name)
            if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
                continue
            before = set(found.get(other, ()))
            found.setdefault(other, set()).update(found[name])
            if found[other] != before:
                todo.append(other)
    return found


def package(name: str) -> Distribution | None:
    """An installed package."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(installed: Distribution) -> str:
    """What a package says its licence is, or "not said"."""
    about = installed.metadata
    if text := about.get("License-Expression"):
        return text
    said = [c.rpartition("::")[2] for c in about.get_all("Classifier") or () if "License ::" in c]
    said += [(about.get("License") or "")[:300]]
    for file in installed.files or ():
        if re.match(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE):
            path = Path(str(file.locate()))
            said.append(path.read_text(encoding="utf-8", errors="replace")[:600])
    for text in said:
        if found := next((n for form, n in SPDX if re.search(form, text, re.IGNORECASE)), None):
            return found
    return "not said"


def page() -> str:
    """The text of ``docs/licences.md``."""
    first = direct()
    tables: dict[bool, list[str]] = {False: [], True: []}
    for name, extras in sorted(needed(first).items()):
        installed = package(name)
        said = licence(installed) if installed else "not installed where this was written"
        said += f"; {CARRIED[name]}" if name in CARRIED else ""
        development = extras <= set(FOR_DEVELOPMENT)
        named = f"**{name}**" if name in first else name
        shown = ", ".join(sorted(extras - set(FOR_DEVELOPMENT) or extras))
        tables[development].append(f"| {named} | {said} | {shown} |")
    head = "| package | licence | comes with |\n|---|---|---|\n"
    return f"""# Licences of what voxrisk builds on

voxrisk itself is under the Apache License 2.0. It contains no code of these packages; they are
installed beside it. Those in bold are asked for by voxrisk, the others by these. The licence is the
one that the installed package states. The weights of models have licences of their own:
[models](models.md). The voices of the demo, which come with voxrisk (`recorded.tar`), were spoken
by Kokoro-82M (Apache-2.0). This page is written by `python docs/licences.py`.

## Installed with voxrisk or one of its extras

{head}{chr(10).join(tables[False])}

## For development only

{head}{chr(10).join(tables[True])}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
