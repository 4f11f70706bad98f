"""A recogniser of an attacker, and the vectors it gives; who trains one is :mod:`recognisers`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.sided import Side
from voxrisk.attack.soundness import Fit
from voxrisk.attack.suite import Suite
from voxrisk.corpus import Utterance
from voxrisk.files.embeddings import read_embeddings
from voxrisk.pipeline.evaluation import is_ready
from voxrisk.pipeline.stages import Stages
from voxrisk.results import Training
from voxrisk.types import Embeddings

Spoken = tuple[Sequence[Utterance], str]  # a corpus and its digest
Map = Callable[[NDArray[np.floating]], NDArray[np.floating]]


@dataclass(frozen=True, slots=True, eq=False)
class Recogniser:
    """A recogniser of one attacker.

    Attributes:
        encoder: Name or folder of the encoder.
        after: Map behind the encoder, or None.
        training: How it was trained, or None for a ready encoder.
        vectors: Training vectors before the map, for its controls.
        targets: Target voice of each training vector, where known.
        held_out: Vectors of training speakers kept out of the training of a whole recogniser: its
            own, and those of the ready encoder.
        listen: What gives the vectors before the map, if it is not the encoder alone; called as
            ``listen(rows, digest, stages, label, before)``.
        fit: How the map is trained, for its control, if not as the adapter is.
        suite: What it was chosen from, if it was.
    """

    encoder: str
    after: Map | None = None
    training: Training | None = None
    vectors: Embeddings | None = None
    targets: tuple[str, ...] | None = None
    held_out: tuple[Embeddings, Embeddings] | None = None
    listen: Callable[..., Embeddings] | None = None
    fit: Fit | None = None
    suite: Suite | None = None

    def embed(
        self,
        rows: Sequence[Utterance],
        digest: str,
        stages: Stages,
        label: str,
        *,
        side: Side | None = None,
        before: Spoken | None = None,
    ) -> Embeddings:
        """Vectors of a corpus as this recogniser gives them on one side of trials."""
        return self.mapped(self.heard(rows, digest, stages, label, before), side)

    def mapped(self, heard: Embeddings, side: Side | None) -> Embeddings:
        """What was heard, behind the map; a suite may hear the two sides of a trial unlike."""
        if self.suite is not None:
            if side is None:
                raise ValueError("a suite must be told on which side of a trial it listens")
            return replace(heard, vectors=self.suite.apply(heard.vectors, side))
        return heard if self.after is None else replace(heard, vectors=self.after(heard.vectors))

    def heard(
        self,
        rows: Sequence[Utterance],
        digest: str,
        stages: Stages,
        label: str,
        before: Spoken | None = None,
    ) -> Embeddings:
        """Vectors of a corpus before the map; ``before`` is the same speech as it was."""
        if self.listen is not None:
            return self.listen(rows, digest, stages, label, before)
        return embed_stage(rows, digest, self.encoder, stages, label)


def embed_stage(
    rows: Sequence[Utterance], digest: str, encoder: str, stages: Stages, label: str
) -> Embeddings:
    """Embeddings of a corpus, made once for each encoder."""
    from voxrisk.attack.embed import embed_corpus
    from voxrisk.attack.encoders import encoder_identity

    made: list[Embeddings] = []

    def make(folder: Path) -> None:
        made.append(embed_corpus(rows, encoder, folder / "embeddings.npz"))

    inputs = {"corpus": digest, "encoder": encoder_identity(encoder)}
    what = encoder if is_ready(encoder) else "encoder of the user"
    folder = stages.run("embed", inputs, make, label=label, speech=rows, what=what)
    return made[0] if made else read_embeddings(folder / "embeddings.npz")
