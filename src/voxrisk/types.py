"""The few types every room shares: an estimate, its interval, embeddings, the two errors."""

import importlib
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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

    @property
    def length(self) -> int:
        """L, of a figure of a crowd."""
        return int(self.parameters["L"])

    @property
    def size(self) -> int:
        """N, of a figure of a crowd."""
        return int(self.parameters["N"])

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, strings and numbers, for ``json.dump``."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Estimate":
        """The inverse of :meth:`to_json`."""
        interval = plain["interval"]
        return cls(**{**plain, "interval": Interval(**interval) if interval else None})


def as_path(given: object, what: str) -> Path:
    """A path that somebody gave as text or as a path.

    >>> as_path(3, "a corpus")
    Traceback (most recent call last):
    ...
    voxrisk.types.InputError: a corpus is given by its path, and this is 3 (int)
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise InputError(f"{what} is given by its path, and this is {given!r} ({type(given).__name__})")


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """What a speaker embedding extractor made of some utterances; row i is utterance i.

    Attributes:
        utterance: ``(n,)`` unique ids.
        speaker: ``(n,)`` who speaks.
        vectors: ``(n, d)`` one embedding for each utterance, finite and not all zero.
        source: Where they come from; error messages name it.

    Raises:
        InputError: If the arrays do not fit together, an id is doubled or empty, or an embedding is
            NaN, infinite or all zeros: a broken extractor must never look like privacy.
    """

    utterance: "NDArray[np.str_]"
    speaker: "NDArray[np.str_]"
    vectors: "NDArray[np.floating[Any]]"
    source: str = "embeddings"

    def __post_init__(self) -> None:
        import numpy as np

        where = self.source
        try:
            vectors = np.asarray(self.vectors)
            if not np.issubdtype(vectors.dtype, np.floating):
                vectors = vectors.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: embeddings must be numbers ({error})") from error
        names, speakers = (
            np.atleast_1d(np.asarray(v, str)) for v in (self.utterance, self.speaker)
        )
        for key, value in (("utterance", names), ("speaker", speakers), ("vectors", vectors)):
            object.__setattr__(self, key, value)  # lists will do
        if vectors.ndim != 2 or not vectors.size:
            raise InputError(
                f"{where}: embeddings have shape {vectors.shape}; "
                "they must be a table (utterances, dimensions) with at least one row"
            )
        if not names.shape == speakers.shape == vectors.shape[:1]:
            raise InputError(
                f"{where}: {names.size} utterance ids and {speakers.size} speakers for "
                f"{len(vectors)} embeddings; there must be one of each for every row"
            )
        for column, values in (("utterance id", names), ("speaker", speakers)):
            if (empty := np.flatnonzero(values == "")).size:
                raise InputError(f"{where} row {empty[0]}: the {column} is empty; name it")
        order = np.argsort(names, kind="stable")
        if (twice := np.flatnonzero(names[order][1:] == names[order][:-1])).size:
            first, second = order[twice[0]], order[twice[0] + 1]
            raise InputError(
                f"{where}: utterance {names[first]} is there twice (rows {first} and {second}); "
                "keep one of them, or give them different ids"
            )
        # The sum of squares is NaN, infinite or zero exactly where a row is bad.
        power = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        if (bad := np.flatnonzero(~np.isfinite(power) | (power == 0))).size:
            row = bad[0]
            more = f", and {bad.size - 1} more are bad" if bad.size > 1 else ""
            what = "all zeros" if power[row] == 0 else "not finite"
            raise InputError(
                f"{where} row {row}: the embedding of utterance {names[row]} (speaker "
                f"{speakers[row]}) is {what}{more}; embed again or remove the utterance"
            )
