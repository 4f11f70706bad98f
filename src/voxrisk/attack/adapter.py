"""An attacker trained within a minute: a ready encoder as it is, and a linear map behind it.

Training a recogniser from nothing takes hours of speech before it is as good as a ready one, so a
short training makes a weak attacker, whatever it knows. Here the ready encoder stays, and only a
map on its vectors learns from anonymized speech, with the source head and the target head of
:mod:`voxrisk.attack.heads`. A vector is computed once for all attackers.

Targets are unlearned in one of two ways. ``"erase"``: what a linear classifier can know of them is
removed in closed form before the map learns (:mod:`voxrisk.attack.erasure`). ``"reverse"``: the map
learns against a target head, as the recogniser of paper 3 does (:mod:`voxrisk.attack.descend`).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.adapted import Adapter, direction
from voxrisk.attack.embed import embed_corpus
from voxrisk.attack.encoder import ADAPTER
from voxrisk.attack.encoders import load_encoder
from voxrisk.attack.epochs import Epoch, write_curves
from voxrisk.attack.erasure import check_classes, erasure
from voxrisk.attack.recipes import AdapterRecipe
from voxrisk.attack.soundness import Fit, Map, Rows
from voxrisk.corpus import Utterance
from voxrisk.files.atomic import atomic, write_text
from voxrisk.files.embeddings import read_embeddings
from voxrisk.types import Embeddings, InputError

Floats = NDArray[np.float64]
Unlearn: TypeAlias = Literal["erase", "reverse"]
UNLEARN = ("erase", "reverse")


@dataclass(frozen=True, slots=True, eq=False)
class Adapted:
    """A finished training."""

    adapter: Adapter
    epochs: tuple[Epoch, ...]


def fit_adapter(
    embeddings: Embeddings,
    recipe: AdapterRecipe,
    *,
    targets: Sequence[str] | None = None,
    unlearn: Unlearn | None = None,
    begin: Floats | None = None,
    seed: int = 0,
    encoder: str = "",
    identity: str = "",
) -> Adapted:
    """Train a map on the vectors of a training set, labelled with its (source) speakers.

    Args:
        embeddings: Vectors of a ready encoder.
        recipe: Constants.
        targets: Target speaker of each utterance; then a target head is trained and measured.
        unlearn: ``"erase"``: what tells the targets apart is removed first, in closed form; no
            gradient is reversed, and w_T stays 0. ``"reverse"``: the map learns against the target
            head, with w_T = 0 for E epochs and then rising to 1. None: the head only measures.
        begin: ``(d, e)`` what the map begins as, if not as the identity.
        seed: Of the split and the order.
        encoder: Name of the ready encoder, kept with the map.
        identity: Hash of its weights.

    Raises:
        InputError: If there are too few speakers or utterances, targets are missing, or there are
            more of them than can be unlearned.
    """
    if unlearn not in (None, *UNLEARN):
        raise InputError(f"unlearn is {unlearn!r}; choose {' or '.join(UNLEARN)}")
    if unlearn and targets is None:
        raise InputError("to unlearn targets, the target speaker of each utterance is needed")
    names, source = np.unique(embeddings.speaker, return_inverse=True)
    if names.size < 2 or len(source) < 2 * names.size:
        raise InputError(
            f"{embeddings.source}: {len(source)} utterances of {names.size} speakers cannot train "
            "an attacker; it needs two speakers or more with at least two utterances each"
        )
    raw = direction(embeddings.vectors)
    train, held = _split(source, recipe.validation, seed)
    mean = raw[train].mean(axis=0)
    x = direction(raw - mean)
    labels = [source]
    erase: Floats | None = None
    if targets is not None:
        labels.append(np.unique(np.array(targets), return_inverse=True)[1])
        if unlearn == "erase":
            erase = erasure(x[train], labels[1][train])
        elif unlearn == "reverse":
            check_classes(len(set(targets)), utterances=len(train))
    from voxrisk.attack.descend import descend
    from voxrisk.attack.ecapa_encoder import cpu_threads

    reverse = unlearn == "reverse"
    shown = direction(x if erase is None else x @ erase)
    with cpu_threads(1):  # small matrices: more threads only wait for each other
        matrix, epochs = descend(
            shown, labels, train, held, recipe, reverse=reverse, begin=begin, seed=seed
        )
    whole = matrix if erase is None else erase @ matrix
    return Adapted(Adapter(encoder, identity, mean, whole), tuple(epochs))


def adapter_fit(
    recipe: AdapterRecipe,
    *,
    targets: Sequence[str] | None = None,
    unlearn: Unlearn | None = None,
    seed: int = 0,
) -> Fit:
    """This training as :func:`voxrisk.attack.soundness.training_control` asks for it."""

    def fit(embeddings: Embeddings, rows: Rows) -> Map:
        part = Embeddings(
            embeddings.utterance[rows],
            embeddings.speaker[rows],
            embeddings.vectors[rows],
            embeddings.source,
        )
        own = None if targets is None else [targets[i] for i in rows.tolist()]
        return fit_adapter(part, recipe, targets=own, unlearn=unlearn, seed=seed).adapter.apply

    return fit


def train_adapter(
    rows: Sequence[Utterance],
    folder: Path | str,
    recipe: AdapterRecipe,
    *,
    encoder: str = "ecapa-voxceleb",
    seed: int = 0,
    unlearn: Unlearn | None = None,
    target_column: str = "target",
    device: str = "auto",
    vectors: Path | None = None,
    workers: int | None = None,
) -> Adapted:
    """Embed ``rows`` with a ready encoder, train a map behind it, and write it into ``folder``.

    Args:
        rows: Training set; the label is the (source) speaker.
        folder: Gets ``adapter.npz``, ``attacker.json`` and ``curves.csv``.
        recipe: Constants.
        encoder: The ready encoder.
        seed: Of the split and the order.
        unlearn: How the map unlearns the targets, if at all; see :func:`fit_adapter`.
        target_column: Column with the target speaker of each utterance.
        device: For the encoder.
        vectors: File for the vectors, by default inside ``folder``; read if it is there.
        workers: Processes for embedding.
    """
    folder = Path(folder)
    targets = target_names(rows, target_column, needed=unlearn is not None)
    path = vectors or folder / "training.npz"
    held = read_embeddings(path) if path.is_file() else None
    if held is None or held.utterance.tolist() != [row.utterance for row in rows]:
        held = embed_corpus(rows, encoder, path, device=device, workers=workers)
    found = fit_adapter(
        held,
        recipe,
        targets=targets,
        unlearn=unlearn,
        seed=seed,
        encoder=encoder,
        identity=load_encoder(encoder, device="cpu").identity,
    )
    write_adapter(folder, found, training_facts(rows, recipe, targets, unlearn, seed, encoder))
    return found


def training_facts(
    rows: Sequence[Utterance],
    recipe: AdapterRecipe,
    targets: Sequence[str] | None,
    unlearn: Unlearn | None,
    seed: int,
    encoder: str,
) -> dict[str, Any]:
    """What ``attacker.json`` says about a training."""
    return {
        "recipe": asdict(recipe),
        "seed": seed,
        "unlearn": unlearn,
        "start": encoder,
        "utterances": len(rows),
        "sources": len({row.speaker for row in rows}),
        "targets": len(set(targets)) if targets else None,
    }


def target_names(
    rows: Sequence[Utterance], column: str, *, needed: bool = False
) -> list[str] | None:
    """The target speaker of each utterance, or None where the corpus knows none.

    Raises:
        InputError: If only some are known, or they are ``needed`` and unknown.
    """
    missing = [row.utterance for row in rows if not row.extra.get(column)]
    if not missing:
        return [row.extra[column] for row in rows]
    if needed or len(missing) < len(rows):
        raise InputError(
            f"utterance {missing[0]} has no {column!r} ({len(missing)} of {len(rows)}); the "
            "target head needs the target speaker that the anonymizer chose: anonymize with "
            "voxrisk, or train without unlearning"
        )
    return None


def _split(
    source: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out a share of each speaker that has three utterances or more, at least one."""
    random = np.random.default_rng([seed, 0])
    held = np.zeros(len(source), dtype=bool)
    for label in range(int(source.max()) + 1):
        own = random.permutation(np.flatnonzero(source == label))
        if len(own) > 2:
            held[own[: max(1, round(share * len(own)))]] = True
    if not held.any():
        held[random.permutation(len(source))[:1]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def write_adapter(folder: Path, found: Adapted, facts: dict[str, Any]) -> None:
    """Write ``adapter.npz``, ``attacker.json`` and ``curves.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_curves(folder, found.epochs)
    write_text(folder / "attacker.json", json.dumps(facts, indent=2, default=str) + "\n")
    with atomic(folder / ADAPTER) as part, part.open("wb") as stream:
        np.savez(stream, **asdict(found.adapter))
