"""Options that several commands have."""

import math
from typing import Annotated

import typer


def number(value: float) -> float:
    """The value, unless it is not a number: that lies between no two ends, and beyond none."""
    if math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


Confidence = Annotated[float, typer.Option(min=0.5, max=0.999, callback=number)]
