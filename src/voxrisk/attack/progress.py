"""One line of progress with an honest estimate: what is left, at the pace of the last minutes."""

import sys
import time
from collections import deque

WINDOW = 50  # steps that set the pace: recent ones, so that a busy machine shows


class Progress:
    """Show the share done and the time left on stderr, on a terminal only."""

    def __init__(self, total: int, *, show: bool = True) -> None:
        self.total = total
        self.show = show and sys.stderr.isatty()
        self.times: deque[float] = deque([time.monotonic()], maxlen=WINDOW)
        self.shown = 0.0

    def left(self, step: int) -> float:
        """Seconds left after ``step`` (from 0), validation included, at the recent pace."""
        pace = (self.times[-1] - self.times[0]) / max(len(self.times) - 1, 1)
        return pace * (self.total - step - 1)

    def step(self, step: int, label: str) -> None:
        """Tell that ``step`` is done."""
        now = time.monotonic()
        self.times.append(now)
        if self.show and (now - self.shown > 1.0 or step + 1 == self.total):
            self.shown = now
            left = self.left(step)
            end = "\n" if step + 1 == self.total else ""
            text = f"\r{label}: {100 * (step + 1) / self.total:3.0f} %, {left / 60:.1f} min left "
            print(text, end=end, file=sys.stderr, flush=True)
