"""The few types every room shares: an estimate, its interval, and the two errors a user meets."""

import importlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any


class InputError(ValueError):
    """The input cannot give an answer; the message says what is wrong, where, and the way out."""


class MissingExtraError(ImportError):
    """A part of voxrisk needs a package that the core installation leaves out."""


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional package, or say which extra of voxrisk brings it.

    >>> require("json", extra="core").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = error.name or module
        raise MissingExtraError(
            f"this needs the package {package!r}, which the light core leaves out; "
            f"install it with: pip install 'voxrisk[{extra}]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval and the way it was found.

    Attributes:
        low: Lower end.
        high: Upper end.
        confidence: Probability that such an interval covers the truth, e.g. 0.95.
        method: ``"speaker bootstrap"`` or ``"exact (no event in n speakers)"``, and the like.
    """

    low: float
    high: float
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure: its value, how sure it is, and what to hold it against.

    Attributes:
        name: Machine name, e.g. ``"rocch_eer"``.
        value: The figure. Rates are fractions, never percent.
        chance: What an attacker who learns nothing from the speech gets.
        n: Sizes behind the figure, e.g. ``{"target": 449, "nontarget": 11295, "speaker": 29}``.
        source: Paper and equation of the definition.
        interval: Confidence interval, or None when none was asked for.
        parameters: Everything that was chosen: seed, resamples, prior, ``compat``.
    """

    name: str
    value: float
    chance: float
    n: Mapping[str, int]
    source: str
    interval: Interval | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if math.isnan(self.value):
            raise ValueError(f"{self.name}: an estimate is never NaN; raise an InputError instead")

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, strings and numbers, for ``json.dump``."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Estimate":
        """The inverse of :meth:`to_json`."""
        interval = plain["interval"]
        return cls(**{**plain, "interval": Interval(**interval) if interval else None})
