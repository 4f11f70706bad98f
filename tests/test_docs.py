"""The pages say what is so: links lead somewhere, code compiles, commands and options exist."""

import ast
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer

from voxrisk.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^ *```(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^ *```")
LINK = re.compile(r"(?<!\\)\]\((?P<to>[^)\s]+)\)")
SHELL = {"", "console", "sh", "bash"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def prose(page: Path) -> str:
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The names of the headings, as GitHub and mkdocs make them."""
    found = re.findall(r"(?m)^#+ +(.+)$", FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in found}


def test_every_figure_is_mapped_to_a_question_of_the_law() -> None:
    """What a data protection officer asks: which figure answers what, and what it does not."""
    law = (ROOT / "docs" / "law.md").read_text(encoding="utf-8")
    metrics = [p.name for p in (ROOT / "docs" / "metrics").glob("*.md") if p.stem != "index"]
    assert len(metrics) > 5
    for page in (*(f"metrics/{name}" for name in metrics), "inference.md", "utility.md"):
        assert f"]({page})" in law, f"law.md does not say what {page} is good for"
    for text in ("Opinion 05/2014", "Recital 26", "Article 35", "EDPB"):
        assert text in law


@pages
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in LINK.finditer(prose(page)):
        if re.match(r"[a-z]+:", link["to"]):
            continue
        name, _, anchor = link["to"].partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {link['to']} leads nowhere"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {link['to']} has no such heading"


def test_the_api_page_names_what_exists() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"(?m)^::: ([\w.]+)$", page)
    assert len(named) > 50
    for path in named:
        assert not isinstance(pkgutil.resolve_name(path), ModuleType), path


@pages
def test_python_blocks_compile(page: Path) -> None:
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "python":
            ast.parse(block["code"], filename=str(page))


def shell_blocks(page: Path) -> Iterator[str]:
    """Fenced and indented blocks of commands."""
    text = page.read_text(encoding="utf-8")
    yield from (block["code"] for block in FENCE.finditer(text) if block["kind"] in SHELL)
    yield from re.findall(r"(?m)^(?: {4}.*\n)+", FENCE.sub("", text))


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each ``voxrisk`` command in code blocks and between backticks."""
    lines = [
        line for block in shell_blocks(page) for line in block.replace("\\\n", " ").split("\n")
    ]
    lines += re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    for line in lines:
        command = re.search(r"(?:^|[\s$])(?:-m )?voxrisk (?P<rest>.*)", line.split("  #")[0])
        if command:
            yield shlex.split(command["rest"].replace("…", " "), comments=True)


def options_of(words: list[str]) -> tuple[str, set[str], list[str]]:
    """Follow the words to a command: its name, its options, and the words that are left."""
    command = typer.main.get_command(app)
    path = ["voxrisk"]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command {' '.join([*path, words[0]])}"
        path.append(words[0])
        command, words = command.commands[words[0]], words[1:]
    known = {name for p in command.params for name in [*p.opts, *p.secondary_opts]} | {"--help"}
    return " ".join(path), known, words


@pages
def test_commands_and_options_exist(page: Path) -> None:
    for words in commands(page):
        name, known, rest = options_of(words)
        for word in rest:
            if re.match(r"--?[A-Za-z]", word):
                option = word.split("=")[0]
                assert option in known, f"{page.name}: {name} has no option {option}"


def test_there_is_something_to_check() -> None:
    """A pattern that finds nothing would let everything pass."""
    assert sum(len(list(commands(page))) for page in PAGES) > 60
    assert sum(len(LINK.findall(prose(page))) for page in PAGES) > 60


def test_a_wrong_option_and_a_wrong_command_are_found() -> None:
    assert "--nosuch" not in options_of(["measure", "--nosuch"])[1]
    with pytest.raises(AssertionError, match="no command voxrisk corpus nosuch"):
        options_of(["corpus", "nosuch"])
