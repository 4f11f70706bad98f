"""The informed attacker who tries everything: from training speech to a chosen recogniser.

What it hears speech with: the encoders of the evaluation; where the anonymizer can be run
backwards, the same encoders on speech that was undone; where the training speech is there before
it was anonymized, the first encoder on that too; and the words, where there are transcripts.
Everything is fitted and chosen on training speech (:mod:`voxrisk.attack.suite`); the speech under
attack is only listened to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from voxrisk.attack.guess import Guess, fit_guess
from voxrisk.attack.joined import ORIGINAL, UNDONE, join, original_of
from voxrisk.attack.suite import (
    Judged,
    Lessons,
    Sort,
    Suite,
    choose_suite,
    read_suite,
    suite_fit,
    write_suite,
)
from voxrisk.attack.words import word_vectors
from voxrisk.corpus import Utterance
from voxrisk.hearing import language_code
from voxrisk.knowledge import Knowledge
from voxrisk.measure import Trials
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.recogniser import Recogniser, Spoken, embed_stage
from voxrisk.pipeline.sides import Sides, score_sides
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.undo import drawn_values, undo_stage
from voxrisk.results import Training
from voxrisk.types import Embeddings

WORDS = "words"
DURATIONS = "durations"
# What each block hears; those that are not here hear voices. Training speakers mostly have one
# session, so what names the recording would look far stronger on them than it is on people met
# elsewhere; and how somebody speaks changes from session to session too, if less.
SORTS: dict[str, Sort] = {
    "ecapa-pooled": "pooled",
    "prosody": "manner",
    DURATIONS: "manner",
    "longterm": "recording",
    WORDS: "words",
}
COLLECTION = "source"  # column of a training table that was put together from several corpora
BY = "longterm"  # what a drawn parameter is heard by: better than by any encoder of voices
HEARD_LEAST = 0.3  # correlation of guesses with the drawn values, under which nothing is undone


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Hears speech with every encoder of the suite; vectors side by side, see :func:`join`.

    Attributes:
        encoders: Names or folders.
        anonymizer: What is undone, if ``guess`` is there.
        guess: Of the parameter that the anonymizer drew.
        learned: Digest of the corpus the guess learned from: its own utterances are guessed by
            the folds that did not hear them, or they would be undone better than any others.
        aligned: Encoders whose vectors of speech as it was stand beside; of what is enrolled, and
            of nothing that is tried: an attacker does not have that.
        reads: Whether the words stand beside.
    """

    encoders: tuple[str, ...]
    anonymizer: str = ""
    guess: Guess | None = None
    learned: str = ""
    aligned: tuple[str, ...] = ()
    reads: bool = False

    def __call__(
        self,
        rows: Sequence[Utterance],
        digest: str,
        stages: Stages,
        label: str,
        before: Spoken | None = None,
    ) -> Embeddings:
        """Vectors of a corpus; ``before`` is the same speech as it was, where one has it."""
        return join(self.heard(rows, digest, stages, label, before)).embeddings

    def heard(
        self,
        rows: Sequence[Utterance],
        digest: str,
        stages: Stages,
        label: str,
        before: Spoken | None = None,
    ) -> dict[str, Embeddings]:
        """The vectors of each block; what is aside is last."""
        found = {e: embed_stage(rows, digest, e, stages, f"{label}, {e}") for e in self.encoders}
        if self.guess is not None:
            found |= self._undone(found, rows, digest, stages, label)
        for encoder in self.aligned:
            found[original_of(encoder)] = _as_it_was(found[encoder], encoder, stages, before)
        if self.reads:
            one = found[self.encoders[0]]
            found[WORDS] = replace(one, vectors=word_vectors([row.text or "" for row in rows]))
        return {name: found[name] for name in sorted(found, key=_place)}

    def _undone(
        self,
        plain: dict[str, Embeddings],
        rows: Sequence[Utterance],
        digest: str,
        stages: Stages,
        label: str,
    ) -> dict[str, Embeddings]:
        assert self.guess is not None
        if not any(row.extra.get("anonymizer") == self.anonymizer for row in rows):
            # Original speech, for the control: there is nothing to undo.
            return {UNDONE + e: plain[e] for e in voices(self.encoders)}
        values = (
            self.guess.held_out
            if digest == self.learned
            else self.guess.of(embed_stage(rows, digest, BY, stages, f"{label}, {BY}").vectors)
        )
        undone = undo_stage(rows, digest, values, self.anonymizer, stages, label)
        own = digest_corpus(undone, stages.folder / "hashes.json")
        return {
            UNDONE + e: embed_stage(undone, own, e, stages, f"{label}, undone, {e}")
            for e in voices(self.encoders)
        }


def _as_it_was(like: Embeddings, encoder: str, stages: Stages, before: Spoken | None) -> Embeddings:
    """Vectors of the same utterances as they were; where one does not have them, one for all."""
    if before is None:
        # Only fills the place: what is tried is never read there. Zeros would be a broken vector.
        return replace(like, vectors=np.ones_like(like.vectors))
    held = embed_stage(*before, encoder, stages, f"original speech, {encoder}")
    place = {name: i for i, name in enumerate(held.utterance.tolist())}
    rows = [place[name] for name in like.utterance.tolist()]
    return replace(like, vectors=held.vectors[rows])


def _place(block: str) -> int:
    """Voices and manner first: what an untrained recogniser would hear; the rest behind it."""
    if block.startswith(ORIGINAL):
        return 2
    return {"pooled": 1, "recording": 3, "words": 4}.get(SORTS.get(block, "voice"), 0)


def voices(encoders: Sequence[str]) -> list[str]:
    """Those that listen to the voice, and so to what an anonymizer changed."""
    return [name for name in encoders if SORTS.get(name, "voice") == "voice"]


def train_suite(
    chosen: Evaluation,
    knowledge: Knowledge,
    rows: Sequence[Utterance],
    stages: Stages,
    *,
    before: Sequence[Utterance] | None = None,
) -> Recogniser:
    """Hear the training speech with everything, and choose.

    Args:
        chosen: The evaluation.
        knowledge: The attacker.
        rows: Anonymized training speech.
        stages: Where finished work is kept.
        before: The same speech as it was, where one has it.

    Raises:
        InputError: If there are too few training speakers to choose on.
    """
    from voxrisk.attack.adapter import target_names
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.maps import BACKENDS

    hashes = stages.folder / "hashes.json"
    digest = digest_corpus(rows, hashes)
    label = f"training speech of the {knowledge.name} attacker"
    listener = Listener(
        usable_encoders(chosen, [*rows, *stages.read(chosen.original)]),
        aligned=(chosen.encoder,) if before and chosen.limits.aligned else (),
        reads=all(row.text for row in rows),
    )
    values = drawn_values(rows, chosen.anonymizer)
    if values is not None and chosen.anonymizer:
        heard = embed_stage(rows, digest, BY, stages, f"{label}, {BY}")
        guess = fit_guess(heard, values, seed=chosen.seed)
        if guess.correlation >= HEARD_LEAST:
            listener = replace(listener, anonymizer=chosen.anonymizer, guess=guess, learned=digest)
    spoken = (tuple(before), digest_corpus(before, hashes)) if listener.aligned and before else None
    joined = join(listener.heard(rows, digest, stages, label, spoken))
    targets = _shared_targets(target_names(rows, "target"))
    kinds = {row.speaker: row.gender for row in rows if row.gender}
    fresh: list[Suite] = []

    def make(folder: Path) -> None:
        found = choose_suite(
            joined,
            targets=targets,
            kinds=kinds,
            sorts=SORTS,
            collections={row.speaker: row.extra.get(COLLECTION, "") for row in rows},
            seed=chosen.seed,
            resamples=chosen.limits.resamples,
            confidence=chosen.confidence,
            workers=None,
        )
        write_suite(folder, found)
        fresh.append(found)

    inputs = {
        "corpus": digest,
        "encoders": {e: encoder_identity(e) for e in listener.encoders},
        "blocks": joined.blocks,
        "undone by": encoder_identity(BY) if listener.guess else None,
        "backends": list(BACKENDS),
        "seed": chosen.seed,
        "resamples": chosen.limits.resamples,
        "confidence": chosen.confidence,
    }
    label = f"choice of the {knowledge.name} attacker"
    folder = stages.run("suite", inputs, make, label=label, speech=rows)
    suite = fresh[0] if fresh else read_suite(folder)
    lessons = Lessons(joined, targets)
    return Recogniser(
        chosen.encoder,
        None,
        Training(
            speakers=len({row.speaker for row in rows}),
            utterances=len(rows),
            targets=len(set(targets)) if targets else None,
        ),
        # The untrained recogniser of its control hears voices and manner, as they are.
        joined.only([name for name in joined.blocks if _place(name) == 0]),
        tuple(targets) if targets else None,
        listen=listener,
        fit=suite_fit(suite, lessons, seed=chosen.seed),
        suite=suite,
    )


def usable_encoders(chosen: Evaluation, rows: Sequence[Utterance]) -> tuple[str, ...]:
    """The encoders that can hear all of ``rows``: training speech and speech under test.

    The lengths of phones need English transcripts and an aligner. If only the training speech had
    transcripts, all people under test would sound alike to a member that was chosen for others:
    the attack would be weak, and look like privacy.
    """
    spoken = {language_code(row.language or chosen.language or "en") for row in rows}
    aligned = all(row.text for row in rows) and spoken == {"en"} and bool(find_spec("pocketsphinx"))
    return tuple(e for e in chosen.suite_encoders if e != DURATIONS or aligned)


def _shared_targets(targets: list[str] | None) -> list[str] | None:
    """Targets that several utterances share; a voice of its own for each is no class to erase."""
    if targets is None or not 1 < len(set(targets)) <= len(targets) / 4:
        return None
    return targets


def member_trials(
    suite: Suite, enroll: Embeddings, trial: Embeddings, sides: Sides
) -> tuple[tuple[Judged, Trials], ...]:
    """What each member alone would have scored on the people under test: shown, never chosen by.

    Args:
        suite: The choice.
        enroll: Vectors side by side of the speech that is enrolled.
        trial: Of the speech that is tried.
        sides: Who enrols with what, and what is tried.
    """
    return tuple(
        (
            judged,
            score_sides(
                sides,
                replace(enroll, vectors=suite.alone(judged.member, enroll.vectors, "enroll")),
                replace(trial, vectors=suite.alone(judged.member, trial.vectors, "trial")),
            ),
        )
        for judged in suite.judged
        if judged.member in suite.maps
    )
