"""An attacker trained within a minute: a ready encoder as it is, and a linear map behind it.

Training a recogniser from nothing takes hours of speech before it is as good as a ready one, so a
short training makes a weak attacker, whatever it knows. Here the ready encoder stays, and only a
map on its vectors learns from anonymized speech, with the source head and the target head of
:mod:`voxrisk.attack.heads`. A vector is computed once for all attackers.

To unlearn the targets, a linear map needs no reversed gradient, which dies out where targets are
easy to tell: what a linear classifier can know of them is removed in closed form, with the least
change of the vectors. Reference: Belrose et al., "LEACE: Perfect linear concept erasure in closed
form", NeurIPS 2023.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.curves import Epoch, write_curves
from voxrisk.attack.embed import embed_corpus
from voxrisk.attack.encoders import ADAPTER, Encoder, load_encoder
from voxrisk.attack.recipes import AdapterRecipe
from voxrisk.corpus import Utterance
from voxrisk.files.atomic import atomic, write_text
from voxrisk.files.embeddings import read_embeddings
from voxrisk.types import Embeddings, InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Adapter:
    """A trained map.

    Attributes:
        encoder: Name of the ready encoder whose vectors it maps.
        identity: Hash of that encoder's weights, as far as it was known.
        mean: ``(d,)`` mean of the training vectors, each of length one.
        matrix: ``(d, d)``.
    """

    encoder: str
    identity: str
    mean: Floats
    matrix: Floats

    def apply(self, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Map vectors ``(n, d)`` of the ready encoder; the result has length one."""
        return _unit(_unit(_unit(vectors) - self.mean) @ self.matrix).astype(np.float32)


class AdaptedEncoder:
    """A ready encoder with its map; see :class:`voxrisk.attack.Encoder`."""

    def __init__(self, name: str, base: Encoder, adapter: Adapter) -> None:
        if adapter.identity and adapter.identity != base.identity:
            raise InputError(
                f"{name}: was trained behind another {adapter.encoder} than the one that is here "
                f"({adapter.identity[:12]} …, not {base.identity[:12]} …); train it again"
            )
        self.name = name
        self.base, self.adapter = base, adapter
        self.identity = f"{base.identity}+{_fingerprint(adapter)}"
        self.dimension = adapter.matrix.shape[1]

    def embed(self, waveforms: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed waveforms ``(samples,)`` at 16 kHz; vectors ``(n, dimension)`` in their order."""
        return self.adapter.apply(self.base.embed(waveforms))


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
    adversarial: bool = False,
    seed: int = 0,
    encoder: str = "",
    identity: str = "",
) -> Adapted:
    """Train a map on the vectors of a training set, labelled with its (source) speakers.

    Args:
        embeddings: Vectors of a ready encoder.
        recipe: Constants.
        targets: Target speaker of each utterance; then a target head is trained and measured.
        adversarial: Whether the map first removes what tells the targets apart.
        seed: Of the split and the order.
        encoder: Name of the ready encoder, kept with the map.
        identity: Hash of its weights.

    Raises:
        InputError: If there are too few speakers or utterances, or targets are missing.
    """
    if adversarial and targets is None:
        raise InputError("the adversarial head needs the target speaker of each utterance")
    names, source = np.unique(embeddings.speaker, return_inverse=True)
    if names.size < 2 or len(source) < 2 * names.size:
        raise InputError(
            f"{embeddings.source}: {len(source)} utterances of {names.size} speakers cannot train "
            "an attacker; it needs two speakers or more with at least two utterances each"
        )
    raw = _unit(embeddings.vectors)
    train, held = _split(source, recipe.validation, seed)
    mean = raw[train].mean(axis=0)
    x = _unit(raw - mean)
    labels = [source]
    erase = np.eye(x.shape[1])
    if targets is not None:
        labels.append(np.unique(np.array(targets), return_inverse=True)[1])
        if adversarial:
            erase = erasure(x[train], labels[1][train])
    matrix, epochs = _descend(_unit(x @ erase), labels, train, held, recipe, seed=seed)
    blind = [replace(epoch, w_target=1.0) for epoch in epochs] if adversarial else epochs
    return Adapted(Adapter(encoder, identity, mean, erase @ matrix), tuple(blind))


def erasure(x: Floats, label: NDArray[np.int64]) -> Floats:
    """The projection ``(d, d)`` after which no linear classifier tells the labels of ``x (n, d)``.

    All class means become the same, and of all such maps this one changes the vectors least. The
    covariance is shrunk towards a sphere, since it is badly known from few vectors; the means
    become the same for any shrinkage.

    Raises:
        InputError: If there are as many classes as dimensions: nothing would be left.
    """
    count = np.bincount(label)
    count_seen = count[count > 0]
    if count_seen.size > min(x.shape[1] // 2, len(x) // 3):
        raise InputError(
            f"{len(x)} training utterances have {count_seen.size} different targets: too many to "
            "unlearn; anonymize the training speech with fewer target speakers"
        )
    centre = np.zeros((count.size, x.shape[1]))
    np.add.at(centre, label, x)
    centre = centre[count > 0] / count_seen[:, None]
    covariance = np.cov(x.T)
    sphere = np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    power, axes = np.linalg.eigh(0.9 * covariance + 0.1 * sphere)
    root = axes * np.sqrt(power) @ axes.T
    inverse = axes / np.sqrt(power) @ axes.T
    differences = (centre - x.mean(axis=0)) * np.sqrt(count_seen)[:, None] @ inverse
    values, directions = np.linalg.svd(differences, full_matrices=False)[1:]
    basis = directions[values > 1e-9 * values.max()]
    projection: Floats = np.eye(x.shape[1]) - inverse @ basis.T @ basis @ root
    return projection


def train_adapter(
    rows: Sequence[Utterance],
    folder: Path | str,
    recipe: AdapterRecipe,
    *,
    encoder: str = "ecapa-voxceleb",
    seed: int = 0,
    adversarial: bool = False,
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
        adversarial: Whether the map unlearns the targets.
        target_column: Column with the target speaker of each utterance.
        device: For the encoder.
        vectors: File for the vectors, by default inside ``folder``; read if it is there.
        workers: Processes for embedding.
    """
    folder = Path(folder)
    targets = target_names(rows, target_column, needed=adversarial)
    path = vectors or folder / "training.npz"
    held = read_embeddings(path) if path.is_file() else None
    if held is None or held.utterance.tolist() != [row.utterance for row in rows]:
        held = embed_corpus(rows, encoder, path, device=device, workers=workers)
    found = fit_adapter(
        held,
        recipe,
        targets=targets,
        adversarial=adversarial,
        seed=seed,
        encoder=encoder,
        identity=load_encoder(encoder, device="cpu").identity,
    )
    write_adapter(folder, found, training_facts(rows, recipe, targets, adversarial, seed, encoder))
    return found


def training_facts(
    rows: Sequence[Utterance],
    recipe: AdapterRecipe,
    targets: Sequence[str] | None,
    adversarial: bool,
    seed: int,
    encoder: str,
) -> dict[str, Any]:
    """What ``attacker.json`` says about a training."""
    return {
        "recipe": asdict(recipe),
        "seed": seed,
        "adversarial": adversarial,
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
            "voxrisk, or train without --adversarial"
        )
    return None


def _descend(
    x: Floats,
    labels: Sequence[NDArray[np.int64]],
    train: NDArray[np.int64],
    held: NDArray[np.int64],
    recipe: AdapterRecipe,
    *,
    seed: int,
) -> tuple[Floats, list[Epoch]]:
    import torch

    from voxrisk.attack.heads import CosineHead, aam_loss

    random = np.random.default_rng([seed, 1])
    vectors = torch.from_numpy(x).float()
    truth = [torch.from_numpy(label) for label in labels]
    matrix = torch.nn.Parameter(torch.eye(vectors.shape[1]))
    heads = []
    for label in truth:
        head = CosineHead(vectors.shape[1], int(label.max()) + 1)
        with torch.no_grad():  # begin each class with the direction of its mean vector
            sums = torch.zeros_like(head.weight).index_add_(0, label[train], vectors[train])
            head.weight.copy_(torch.nn.functional.normalize(sums + 1e-6))
        heads.append(head)
    parameters = [matrix, *(head.weight for head in heads)]
    optimizer = torch.optim.Adam(parameters, lr=recipe.rate)
    done = []
    for epoch in range(1, recipe.epochs + 1):
        began = time.monotonic()
        losses_sum, steps = np.zeros(2), 0
        order = random.permutation(train)
        for first in range(0, len(order), recipe.batch):
            chosen = torch.from_numpy(order[first : first + recipe.batch])
            noise = random.normal(0, recipe.noise, (len(chosen), vectors.shape[1]))
            noisy = vectors[chosen] + torch.from_numpy(noise).float() / vectors.shape[1] ** 0.5
            mapped = noisy @ matrix
            seen = (mapped, mapped.detach())  # the target head measures, and moves nothing
            losses = [
                aam_loss(head(v), label[chosen], margin=recipe.margin, scale=recipe.scale)
                for head, label, v in zip(heads, truth, seen, strict=False)
            ]
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses_sum[: len(losses)] += np.array([float(loss.detach()) for loss in losses])
            steps += 1
        with torch.no_grad():
            mapped = vectors[held] @ matrix
            wrong = [
                float((head(mapped).argmax(dim=1) != label[held]).double().mean())
                for head, label in zip(heads, truth, strict=True)
            ]
        done.append(
            Epoch(
                epoch=epoch,
                rate=recipe.rate,
                w_target=0.0,
                loss_source=float(losses_sum[0] / steps),
                loss_target=float(losses_sum[1] / steps) if len(heads) > 1 else None,
                ver_source=wrong[0],
                ver_target=wrong[1] if len(heads) > 1 else None,
                seconds=time.monotonic() - began,
            )
        )
    return matrix.detach().double().numpy(), done


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


def _unit(vectors: NDArray[np.floating[Any]]) -> Floats:
    wide = vectors.astype(np.float64)
    norm = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: Floats = wide / np.maximum(norm, 1e-12)
    return unit


def write_adapter(folder: Path, found: Adapted, facts: dict[str, Any]) -> None:
    """Write ``adapter.npz``, ``attacker.json`` and ``curves.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_curves(folder, found.epochs)
    write_text(folder / "attacker.json", json.dumps(facts, indent=2, default=str) + "\n")
    with atomic(folder / ADAPTER) as part, part.open("wb") as stream:
        np.savez(stream, **asdict(found.adapter))


def read_adapter(folder: Path) -> Adapter:
    """Read what :func:`write_adapter` wrote; nothing in it is executed."""
    path = folder / ADAPTER
    try:
        with np.load(path, allow_pickle=False) as held:
            found = Adapter(
                str(held["encoder"]), str(held["identity"]), held["mean"], held["matrix"]
            )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: not an attacker's map ({error}); train it again") from error
    if not (np.isfinite(found.mean).all() and np.isfinite(found.matrix).all()):
        raise InputError(f"{path}: the map is not finite; train the attacker again")
    return found


def _fingerprint(adapter: Adapter) -> str:
    return hashlib.sha256(adapter.mean.tobytes() + adapter.matrix.tobytes()).hexdigest()[:32]
