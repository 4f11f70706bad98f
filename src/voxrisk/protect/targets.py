"""Target selection (TSA): which speaker an utterance is converted to.

The choice depends only on the seed and the id of the unit (utterance, speaker or session), never on
order or on the number of workers. A speaker is never their own target. The chosen target goes into
the manifest: the attacker of paper 3 must know it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus import Utterance
from voxrisk.types import InputError

Select: TypeAlias = Literal["random", "same-gender", "opposite-gender", "fixed", "farthest"]
Per: TypeAlias = Literal["utterance", "speaker", "session"]
Vectors: TypeAlias = Mapping[str, NDArray[np.float32]]

SELECT = ("random", "same-gender", "opposite-gender", "fixed", "farthest")
PER = ("utterance", "speaker", "session")


def unit_of(row: Utterance, per: str) -> str:
    """The id that all utterances with the same random choice share."""
    if per == "utterance":
        return row.utterance
    if per == "speaker":
        return row.speaker
    if per == "session":
        if row.session is None:
            raise InputError(
                f"utterance {row.utterance} has no session; choose --per utterance or --per speaker"
            )
        return f"{row.speaker} {row.session}"
    raise InputError(f"per is {per!r}; choose {', '.join(PER)}")


def unit_generator(seed: int, purpose: str, unit: str) -> np.random.Generator:
    """A generator of random numbers that belongs to this unit alone."""
    digest = hashlib.sha256(f"{seed}\0{purpose}\0{unit}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def speakers_of(rows: Sequence[Utterance]) -> dict[str, list[Utterance]]:
    """The utterances of each speaker, speakers sorted by name."""
    found: dict[str, list[Utterance]] = {}
    for row in rows:
        found.setdefault(row.speaker, []).append(row)
    return dict(sorted(found.items()))


def gender_of(rows: Sequence[Utterance]) -> str:
    """The gender of one speaker's rows; missing or contradictory values are an error."""
    found = {row.gender for row in rows}
    if len(found) != 1 or None in found:
        names = ", ".join(sorted(str(gender) for gender in found))
        raise InputError(
            f"speaker {rows[0].speaker}: gender is {names}; fill the column gender (f or m) "
            "or choose a selection that needs none"
        )
    return str(found.pop())


def distances(source: str, pool: Sequence[str], vectors: Vectors) -> NDArray[np.float64]:
    """Cosine distance from one speaker to each of ``pool``, ``(n,)``."""
    missing = [name for name in (source, *pool) if name not in vectors]
    if missing:
        raise InputError(f"no speaker vector for {', '.join(missing[:5])}")
    there = np.stack([vectors[name] for name in pool]).astype(np.float64)
    here = np.asarray(vectors[source], dtype=np.float64)
    norms = np.linalg.norm(there, axis=1) * np.linalg.norm(here)
    cosine: NDArray[np.float64] = there @ here / np.maximum(norms, 1e-12)
    return 1 - cosine


def candidates(
    source: Sequence[Utterance], pool: Mapping[str, Sequence[Utterance]], gender: str = "random"
) -> list[str]:
    """The speakers of ``pool`` that a source speaker may be converted to, sorted.

    ``gender`` is ``"random"``, ``"same"`` or ``"opposite"``; the source speaker is left out.
    """
    name = source[0].speaker
    others = [other for other in sorted(pool) if other != name]
    if gender != "random":
        own = gender_of(source)
        others = [o for o in others if (gender_of(pool[o]) == own) == (gender == "same")]
    if not others:
        raise InputError(f"speaker {name}: no target speaker of {gender} gender is left to choose")
    return others


def select_targets(
    rows: Sequence[Utterance],
    pool: Mapping[str, Sequence[Utterance]],
    *,
    select: str = "random",
    per: str = "utterance",
    seed: int = 0,
    fixed: str | None = None,
    vectors: Callable[[], Vectors] | None = None,
) -> list[tuple[str, ...]]:
    """The target speaker of every row, each a tuple of one name.

    Args:
        rows: Source utterances.
        pool: Target speakers and their utterances.
        select: ``random``, ``same-gender``, ``opposite-gender``, ``fixed`` or ``farthest``.
        per: Whether the choice is made anew for each utterance, speaker or session.
        seed: Seed of every choice.
        fixed: The one target speaker, for ``select="fixed"``.
        vectors: Gives a vector for each speaker, asked only for ``select="farthest"``.
    """
    if select not in SELECT:
        raise InputError(f"select is {select!r}; choose {', '.join(SELECT)}")
    if select == "fixed" and fixed not in pool:
        raise InputError(
            f"the fixed target {fixed!r} is not among the target speakers {', '.join(pool)}"
        )
    gender = select.removesuffix("-gender") if select.endswith("-gender") else "random"
    sources = speakers_of(rows)
    if select == "fixed":
        choice = {name: [str(fixed)] for name in sources}
    else:
        choice = {name: candidates(own, pool, gender) for name, own in sources.items()}
    if select == "farthest":
        if vectors is None:
            raise InputError("select farthest needs speaker vectors")
        known = vectors()
        for name, others in choice.items():
            choice[name] = [others[int(np.argmax(distances(name, others, known)))]]
    chosen: list[tuple[str, ...]] = []
    for row in rows:
        others = choice[row.speaker]
        draw = unit_generator(seed, "target", unit_of(row, per)).integers(len(others))
        chosen.append((others[int(draw)],))
    return chosen
