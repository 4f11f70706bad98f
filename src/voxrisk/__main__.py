"""The ``voxrisk`` command, also as ``python -m voxrisk``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; Ctrl-C is quiet from the first moment on, before anything is loaded."""
    try:
        from voxrisk.cli import main as command
    except KeyboardInterrupt:
        print("interrupted: nothing had begun", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
