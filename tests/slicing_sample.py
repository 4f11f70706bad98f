"""A study of slicing with invented figures, for tests of what is made of it."""

from dataclasses import replace

from voxrisk.pipeline.slicing.recommend import recommend
from voxrisk.results import Anonymizer, Corpus, Encoder, Methods
from voxrisk.slicing_results import (
    PrivacyRow,
    Recommendation,
    SlicingResults,
    SuccessorRow,
    UtilityRow,
)
from voxrisk.types import Estimate, Interval

LENGTHS = (0.5, 1.0, 2.0)


def estimate(name: str, value: float, chance: float = 0.5, half: float = 0.05) -> Estimate:
    span = Interval(value - half, value + half, 0.95, "speaker bootstrap")
    return Estimate(name, value, chance, {"speaker": 45}, "a paper", span)


def sample(losses: dict[float, float] | None = None) -> SlicingResults:
    """Losses of words by length: ±0.05 of each is its interval; None: not measured."""
    privacy = [
        PrivacyRow(
            condition=condition, attacker=attacker, cut=cut, duration=d,
            seconds=(d or 5.0) + 0.3, spread=0.2, pieces=500,
            figures={"d_sys": estimate("d_sys", 0.9 - 0.1 * error - (0.1 if d else 0.0), 0.0),
                     "rocch_eer": estimate("rocch_eer", error + (0.1 if d else 0.0))},
        )
        for condition, attacker, error in (
            ("clear", "original", 0.03), ("anonymized", "lazy-informed", 0.3),
            ("anonymized", "informed", 0.2),
        )
        for cut, lengths in (("whole", (None,)), ("sliced", LENGTHS), ("shortened", LENGTHS))
        for d in lengths
    ]  # fmt: skip
    utility = [
        UtilityRow(
            recogniser="trained", train=condition, test=test, duration=d,
            wer=estimate("wer", 0.1 + loss, 1.0), loss=estimate("wer_loss", loss, 0.0),
            mismatch=None if test == condition else estimate("wer_mismatch", 0.07, 0.0),
        )
        for condition, test in (("clear", "clear"), ("clear", "anonymized"),
                                ("anonymized", "anonymized"))
        for d, loss in (losses or {}).items()
    ]  # fmt: skip
    successors = [
        SuccessorRow(
            condition=condition, attacker=name, uses=uses, duration=d, cut="pause", slices=600.0,
            draws=draws, figures={"mean_rank": estimate("mean_rank", rank),
                                  "precision_at_1": estimate("precision_at_1", 0.1, 1 / 600)},
        )
        for d in LENGTHS
        for condition, name, uses, draws, rank in (
            ("", "trigram", "text", 0, 0.35),
            ("anonymized", "likeness of the voice", "voice", 5, 0.2),
            ("clear", "equal samples", "cut", 5, 0.01),
        )
    ]  # fmt: skip
    study = SlicingResults(
        title="Slices of speech anonymized by <world>",
        corpus=Corpus(speakers=45, utterances=783, hours=1.1),
        anonymizer=Anonymizer(name="world", description="anonymized by world"),
        encoder=Encoder(name="ecapa-voxceleb", description="ready", sha256=""),
        durations=LENGTHS,
        cut="pause",
        privacy=tuple(privacy),
        utility=tuple(utility),
        successors=tuple(successors),
        recommendation=Recommendation(duration=None, reason=""),
        methods=Methods(resamples=1000, enrolment="mean"),
    )
    return replace(study, recommendation=recommend(study))
