"""The informed attacker who tries everything: from training speech to a chosen recogniser.

What it hears speech with: the encoders of the evaluation, and, where the anonymizer can be run
backwards, the same encoders on speech that was undone. Everything is fitted and chosen on training
speech (:mod:`voxrisk.attack.suite`); the speech under attack is only listened to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from voxrisk.attack.guess import Guess, fit_guess
from voxrisk.attack.suite import (
    Judged,
    Suite,
    choose_suite,
    join,
    read_suite,
    suite_fit,
    write_suite,
)
from voxrisk.corpus import Utterance
from voxrisk.knowledge import Knowledge
from voxrisk.measure import Trials
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.recogniser import Recogniser, embed_stage
from voxrisk.pipeline.sides import Sides, score_sides
from voxrisk.pipeline.stages import Stages, digest_corpus
from voxrisk.pipeline.undo import drawn_values, undo_stage
from voxrisk.results import Training
from voxrisk.types import Embeddings

# Heard, judged and shown, and never chosen: training speakers mostly have one session, so what
# names the recording would look far stronger on them than it is on people met elsewhere.
ASIDE = ("longterm",)
# How somebody speaks changes from session to session too, if less: it never outweighs voices.
MANNER = ("prosody",)
UNDONE = "undone "
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
    """

    encoders: tuple[str, ...]
    anonymizer: str = ""
    guess: Guess | None = None
    learned: str = ""

    def __call__(
        self, rows: Sequence[Utterance], digest: str, stages: Stages, label: str
    ) -> Embeddings:
        """Vectors of a corpus."""
        return join(self.heard(rows, digest, stages, label)).embeddings

    def heard(
        self, rows: Sequence[Utterance], digest: str, stages: Stages, label: str
    ) -> dict[str, Embeddings]:
        """The vectors of each encoder, of the speech as it is and undone; what is aside is last."""
        plain = {e: embed_stage(rows, digest, e, stages, f"{label}, {e}") for e in self.encoders}
        if self.guess is None:
            return _last(plain)
        if not any(row.extra.get("anonymizer") == self.anonymizer for row in rows):
            # Original speech, for the control: there is nothing to undo.
            return _last({**plain, **{UNDONE + e: plain[e] for e in voices(self.encoders)}})
        values = (
            self.guess.held_out
            if digest == self.learned
            else self.guess.of(embed_stage(rows, digest, BY, stages, f"{label}, {BY}").vectors)
        )
        undone = undo_stage(rows, digest, values, self.anonymizer, stages, label)
        own = digest_corpus(undone, stages.folder / "hashes.json")
        again = {
            UNDONE + e: embed_stage(undone, own, e, stages, f"{label}, undone, {e}")
            for e in voices(self.encoders)
        }
        return _last({**plain, **again})


def _last(heard: dict[str, Embeddings]) -> dict[str, Embeddings]:
    """The same with what stands aside at the end."""
    return {name: heard[name] for name in sorted(heard, key=lambda name: name in ASIDE)}


def voices(encoders: Sequence[str]) -> list[str]:
    """Those that listen to the voice, and so to what an anonymizer changed."""
    from voxrisk.attack.encoders import WITHOUT_WEIGHTS

    return [name for name in encoders if name not in WITHOUT_WEIGHTS]


def train_suite(
    chosen: Evaluation, knowledge: Knowledge, rows: Sequence[Utterance], stages: Stages
) -> Recogniser:
    """Hear the training speech with everything, and choose.

    Raises:
        InputError: If there are too few training speakers to choose on.
    """
    from voxrisk.attack.adapter import target_names
    from voxrisk.attack.encoders import encoder_identity
    from voxrisk.attack.maps import BACKENDS

    digest = digest_corpus(rows, stages.folder / "hashes.json")
    label = f"training speech of the {knowledge.name} attacker"
    listener = Listener(chosen.suite_encoders)
    values = drawn_values(rows, chosen.anonymizer)
    if values is not None and chosen.anonymizer:
        heard = embed_stage(rows, digest, BY, stages, f"{label}, {BY}")
        guess = fit_guess(heard, values, seed=chosen.seed)
        if guess.correlation >= HEARD_LEAST:
            listener = Listener(chosen.suite_encoders, chosen.anonymizer, guess, digest)
    joined = join(listener.heard(rows, digest, stages, label))
    targets = _shared_targets(target_names(rows, "target"))
    kinds = {row.speaker: row.gender for row in rows if row.gender}
    fresh: list[Suite] = []

    def make(folder: Path) -> None:
        found = choose_suite(
            joined,
            targets=targets,
            kinds=kinds,
            aside=ASIDE,
            manner=MANNER,
            seed=chosen.seed,
            resamples=chosen.limits.resamples,
            confidence=chosen.confidence,
        )
        write_suite(folder, found)
        fresh.append(found)

    inputs = {
        "corpus": digest,
        "encoders": {e: encoder_identity(e) for e in chosen.suite_encoders},
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
    return Recogniser(
        chosen.encoder,
        suite.apply,
        Training(
            speakers=len({row.speaker for row in rows}),
            utterances=len(rows),
            targets=len(set(targets)) if targets else None,
        ),
        # The untrained recogniser of its control must not hear what stands aside either.
        joined.first([name for name in joined.blocks if name not in ASIDE]),
        tuple(targets) if targets else None,
        listen=listener,
        fit=suite_fit(suite, joined, targets=targets, seed=chosen.seed),
        suite=suite,
    )


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
                *(
                    replace(held, vectors=suite.alone(judged.member, held.vectors))
                    for held in (enroll, trial)
                ),
            ),
        )
        for judged in suite.judged
        if judged.member in suite.maps
    )
