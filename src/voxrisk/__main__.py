"""``python -m voxrisk`` is the ``voxrisk`` command."""

from voxrisk.cli import main

main()
