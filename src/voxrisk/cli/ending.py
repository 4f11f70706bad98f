"""How a command ends when it cannot go on: one line for a person, and an exit code for a script."""

import os
import sys
import threading
import traceback
from concurrent.futures import InvalidStateError

import typer

from voxrisk.files.errors import reason, system_words
from voxrisk.types import InputError, MissingExtraError

BAD_INPUT, BUG, INTERRUPTED = 2, 70, 130
GO_ON = "what is finished is kept; run the same command again to go on"


def ended(error: BaseException, *, debug: bool = False) -> int:
    """Say on stderr why a command ends, and give its exit code; ``debug`` shows where, too."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else BAD_INPUT
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has enough. Nothing may be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, typer.Abort):
        # How typer hands on an end of input, and Ctrl-C in older versions.
        error = error.__cause__ or KeyboardInterrupt()
    if (show := getattr(error, "show", None)) and hasattr(error, "exit_code"):
        show()  # a mistake on the command line, in typer's words; its class is private there
        return int(error.exit_code)
    if debug:
        traceback.print_exception(error)
    words, code = _words(error)
    print(words, file=sys.stderr, flush=True)
    return code


def thread_ended(args: threading.ExceptHookArgs) -> None:
    """Say what ended a thread, but for one thing: a pool whose workers end at Ctrl-C.

    Its futures are cancelled by then, and before Python 3.13 its thread stumbles over them.
    """
    if not issubclass(args.exc_type, InvalidStateError):
        threading.__excepthook__(args)


def _words(error: BaseException) -> tuple[str, int]:
    from concurrent.futures.process import BrokenProcessPool

    if isinstance(error, InputError | MissingExtraError):
        return f"error: {error}", BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted: {GO_ON}", INTERRUPTED
    if isinstance(error, MemoryError):
        return f"error: memory ran out; {GO_ON}, with fewer --workers or more memory", BAD_INPUT
    if isinstance(error, BrokenProcessPool):
        return (
            "error: a worker process was killed, most likely because memory ran out; "
            f"{GO_ON}, with fewer --workers or more memory"
        ), BAD_INPUT
    if isinstance(error, OSError) and error.errno is not None:
        return f"error: {system_words(error)}", BAD_INPUT
    return (
        f"this is a bug in voxrisk ({type(error).__name__}: {reason(error)}); run the same command "
        "again with --debug and report what it prints"
    ), BUG
