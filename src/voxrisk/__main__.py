"""The ``voxrisk`` command, also as ``python -m voxrisk``."""

import gc
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; Ctrl-C is quiet from the first moment on, before anything is loaded."""
    # What is imported stays: to look for garbage in it again and again is a sixth of a short run.
    gc.set_threshold(100_000)
    try:
        from voxrisk.cli import main as command
    except KeyboardInterrupt:
        print("interrupted: nothing had begun", file=sys.stderr)
        sys.exit(130)
    try:
        command()
    finally:
        gc.freeze()  # nor once more at the end


if __name__ == "__main__":
    main()
