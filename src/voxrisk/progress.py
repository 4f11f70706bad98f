"""One way to tell what goes on: the logger ``voxrisk``, and one bar for long work.

On a terminal the work has a bar; elsewhere (a log file, a pipe) it has plain lines, few enough to
be read. A library says nothing by itself: the ``voxrisk`` command calls :func:`talk`, and so may
you.
"""

import contextlib
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

log = logging.getLogger("voxrisk")

WINDOW = 50  # reports that set the pace: recent ones, so that a busy machine shows
LINE_SECONDS = 30.0  # lines are at least this far apart,
LINE_SHARE = 0.1  # and a line tells of this much more work,
SILENCE_SECONDS = 600.0  # or that the work still goes on
_bars: list[Any] = []  # the bar on the screen, if any
_UNDER_BAR = {"under_bar": True}  # a line that a bar says already
_stages: list[str] = []  # those under way: they tell of their begin and end themselves
Item = TypeVar("Item")
Result = TypeVar("Result")


def talk(level: int = logging.INFO, *, file: Path | None = None) -> None:
    """Let what voxrisk logs from ``level`` up appear on stderr; calling it again sets the level.

    Args:
        level: For stderr.
        file: Gets plain lines with the time of day too, whatever the terminal shows: at least those
            of ``logging.INFO``. What it held stays.
    """
    for handler in [h for h in log.handlers if isinstance(h, _Stderr | logging.FileHandler)]:
        log.removeHandler(handler)
        handler.close()
    shown = _Stderr()
    shown.setLevel(level)
    log.addHandler(shown)
    log.setLevel(level)
    if file is not None:
        kept = logging.FileHandler(file, encoding="utf-8")
        kept.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(kept)
        log.setLevel(min(level, logging.INFO))


class _Stderr(logging.Handler):
    """Writes a message to stderr, above the bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "under_bar", False):
            return
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.lower()}: {text}"
        if _bars:
            _bars[-1].console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)


class Progress:
    """How much of some work is done and how long the rest will take, for people.

    >>> with Progress("counting", 3) as progress:
    ...     for number in (1, 2, 3):
    ...         progress.at(number)
    """

    def __init__(self, label: str, total: int, *, show: bool = True) -> None:
        self.label, self.total, self.done = label, total, 0
        self.show = show and bool(label) and total > 0
        self.began = time.monotonic()
        self.seen: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self.told = (0, self.began)
        self.bar: Any = None

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self.told = (self.done, self.began)
        self.seen.append(self.told)
        if self.show and log.isEnabledFor(logging.INFO):
            if sys.stderr.isatty() and not _bars and _shown():
                self.bar = _bar(self.label, self.total)
            self._say("%s …", self.label, edge=True)
        return self

    def _say(self, text: str, *facts: Any, edge: bool = False) -> None:
        """A line; begin and end of the work inside a stage are the stage's own."""
        level = logging.DEBUG if edge and _stages else logging.INFO
        log.log(level, text, *facts, extra=_UNDER_BAR if self.bar is not None else None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
            _bars.remove(self.bar)
        if self.show and kind is None and self.done == self.total:
            took = duration(time.monotonic() - self.began)
            self._say("%s: done in %s", self.label, took, edge=True)

    def at(self, done: int, label: str | None = None) -> None:
        """Tell that ``done`` of the work is done, and what it is called now."""
        self.done, self.label = done, label or self.label
        now = time.monotonic()
        self.seen.append((done, now))
        if self.bar is not None:
            self.bar.update(
                self.bar.task_ids[0],
                completed=done,
                description=self.label,
                left=f"{duration(self.left())} left",
            )
        if self.show and done < self.total:
            grown, waited = done - self.told[0], now - self.told[1]
            much = grown >= LINE_SHARE * self.total or waited >= SILENCE_SECONDS
            if waited >= LINE_SECONDS and much:
                self.told = (done, now)
                share, left = done / self.total, duration(self.left())
                self._say("%s: %.0f %%, %s left", self.label, 100 * share, left)

    def left(self) -> float:
        """Seconds left, at the pace of the last reports; infinite before anything is done."""
        (first, began), (last, now) = self.seen[0], self.seen[-1]
        if last <= first:
            return float("inf") if self.done < self.total else 0.0
        return (now - began) / (last - first) * (self.total - last)


@contextlib.contextmanager
def telling(stage: str) -> Iterator[None]:
    """Inside, work says how far it is, and the stage says that it begins and ends."""
    log.info("%s …", stage)
    _stages.append(stage)
    try:
        yield
    finally:
        _stages.pop()


@dataclass(frozen=True)
class Counted(Generic[Item, Result]):
    """A stage that also says how long its processor worked, wherever it runs.

    What this very process works is known without it; a worker process must tell.
    """

    stage: Callable[[Item], Result]
    home: int = field(default_factory=os.getpid)

    def __call__(self, item: Item) -> tuple[Result, float]:
        """What the stage gives for an item, and the seconds to be counted for it."""
        before = self._work()
        result = self.stage(item)
        return result, self._work() - before

    def _work(self) -> float:
        """Seconds of the programs this process has run, and of a worker itself."""
        used = os.times()
        programs = used.children_user + used.children_system
        return programs if os.getpid() == self.home else programs + used.user + used.system

    def take(self, told: tuple[Result, float]) -> Result:
        """The result; what it took is added to :func:`cpu_seconds`."""
        result, spent = told
        _elsewhere[0] += spent
        return result


_elsewhere = [0.0]  # CPU seconds of workers and of programs they ran


def cpu_seconds() -> float:
    """CPU seconds of this process and of its workers so far."""
    return time.process_time() + _elsewhere[0]


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(8.4), duration(312), duration(7_300), duration(float("inf"))
    ('8 s', '5 min', '2 h 2 min', 'unknown time')
    """
    if seconds == float("inf"):
        return "unknown time"
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _shown() -> bool:
    """Whether stderr shows what is told at all; a log file alone needs no bar."""
    shown = [h for h in log.handlers if isinstance(h, _Stderr)]
    return not shown or any(h.level <= logging.INFO for h in shown)


def _bar(label: str, total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    )
    bar.add_task(label, total=total, left="")
    bar.start()
    _bars.append(bar)
    return bar
