"""One name for one option in all commands, and one option for one thing."""

import inspect
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from voxrisk.cli import app

# What people also call these; none of ours may be called so.
OTHER_NAMES = {
    "--output": {"--out", "--outdir", "--out-dir", "--output-dir", "--dest"},
    "--anonymizer": {"--with", "--system", "--method"},
    "--workers": {"--threads", "--jobs", "--processes", "-j"},
    "--force": {"--overwrite", "--replace"},
    "--json": {"--as-json"},
    "--reveal-speakers": {"--reveal"},
    "--seed": {"--random-seed", "--random-state"},
}
SHORT = {"-o": "--output", "-q": "--quiet", "-v": "--verbose", "-L": "--lengths",
         "-N": "--sizes", "-t": "--trials"}  # fmt: skip


def callbacks(
    group: typer.Typer, path: str = "voxrisk"
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command with the function behind it."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{path} {command.name or command.callback.__name__}", command.callback
    for inner in group.registered_groups:
        if inner.typer_instance:
            yield from callbacks(inner.typer_instance, f"{path} {inner.name}")


def options(callback: Callable[..., Any]) -> Iterator[tuple[list[str], str]]:
    """The names of each option, and what kind of thing it takes."""
    hints = typing.get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, *marks = typing.get_args(hints[name]) or (hints[name],)
        if any(isinstance(m, typer.models.ArgumentInfo) for m in marks) or kind is typer.Context:
            continue
        info = next((m for m in marks if isinstance(m, typer.models.OptionInfo)), parameter.default)
        # In Annotated the first name stands where a default would.
        given = (info.default, *(info.param_decls or ()))
        names = [n for n in given if isinstance(n, str) and n.startswith("-")]
        yield names or [f"--{name.replace('_', '-')}"], _plain(kind)


def _plain(kind: Any) -> str:
    """Flag, number or text: one path and several, a path and its text, are the same to a reader."""
    inside = [k for k in typing.get_args(kind) if k is not type(None)]
    kind = _plain(inside[0]) if inside and not isinstance(inside[0], str) else kind
    names = {bool: "flag", int: "number", float: "number", str: "text", Path: "text"}
    return kind if isinstance(kind, str) else names.get(kind, "text")


COMMANDS = dict(callbacks(app))


def test_there_are_commands_to_look_at() -> None:
    """A walk that finds nothing would let everything pass."""
    assert len(COMMANDS) > 15
    assert (["--output", "-o"], "text") in list(options(COMMANDS["voxrisk measure"]))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_has_a_name_of_its_own_for_what_others_have(command: str) -> None:
    for names, _ in options(COMMANDS[command]):
        for long, others in OTHER_NAMES.items():
            assert not set(names) & others, f"{command} {names}: it is called {long}"
        for short in (n for n in names if not n.startswith("--") and len(n) == 2):
            assert SHORT.get(short) in names, f"{command}: {short} is not short for {names}"
        if "--output" in names:
            assert "-o" in names, f"{command}: -o is missing"


def test_an_option_is_the_same_kind_of_thing_everywhere() -> None:
    kinds = defaultdict(lambda: defaultdict(list))
    for command, callback in COMMANDS.items():
        for names, kind in options(callback):
            for name in names:
                kinds[name][kind].append(command)
    assert {n: dict(k) for n, k in kinds.items() if len(k) > 1} == {}


def test_who_writes_a_folder_says_so_and_asks_before_writing_over() -> None:
    for command, callback in COMMANDS.items():
        names = {name for found, _ in options(callback) for name in found}
        if "--output" in names:
            assert "--force" in names, f"{command} writes and has no --force"


def test_the_anonymizer_has_one_name() -> None:
    """``voxrisk anonymize`` and ``voxrisk evaluate`` take the same words."""
    having = [c for c, f in COMMANDS.items() if any("--anonymizer" in n for n, _ in options(f))]
    assert {"voxrisk anonymize", "voxrisk evaluate"} <= set(having)
    assert "--anonymizer" in CliRunner().invoke(app, ["anonymize", "--help"]).output
