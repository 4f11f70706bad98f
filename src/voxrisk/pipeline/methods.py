"""How the figures of a run came about: what a reader needs to get them again."""

import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from voxrisk import __version__
from voxrisk.pipeline.evaluation import Draws, Evaluation, shared_yaml
from voxrisk.pipeline.official import enrolment_words
from voxrisk.pipeline.sides import Sides
from voxrisk.pipeline.speech import Speech
from voxrisk.results import AttackResult, Methods

CITATIONS = (
    "Vauquier et al., Legally validated evaluation framework for voice anonymization, 2025",
    "Noé et al., Speech Pseudonymisation Assessment Using Voice Similarity Matrices, 2020",
    "Franzreb et al., Improving the speaker anonymization evaluation's robustness to target "
    "speakers with adversarial learning, 2025",
    "Maouche et al., Enhancing Speech Privacy with Slicing, 2022",
    "Nautsch et al., The Privacy ZEBRA: Zero Evidence Biometric Recognition Assessment, 2020",
    "Gomez-Barrero et al., General framework to evaluate unlinkability, 2018",
    "Panariello et al., The Risks and Detection of Overestimated Privacy Protection in Voice "
    "Anonymisation, 2025",
    "Voice Privacy from an Attribute-based Perspective, arXiv 2603.20301, 2026",
    "Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques",
)


def methods_of(
    chosen: Evaluation, speech: Speech, attacks: Sequence[AttackResult], sides: Sides | None
) -> Methods:
    """The settings, versions, hashes and papers behind the figures."""
    by = enrolment_words(sides)
    alike = sides is not None and sides.same_gender
    gender = "same-gender trials" if alike else "all speakers are compared"
    if sides is not None and sides.source == "lists" and not alike:
        gender = "the comparisons that the lists name"
    return replace(
        drawn_methods(chosen, attacks),
        enrolment=f"{by}mean of the enrolled utterances' vectors, cosine similarity; {gender}",
        hashes={"original": speech.digest, "anonymized": speech.anonymized_digest},
        evaluation_yaml=shared_yaml(chosen),
    )


def drawn_methods(chosen: Draws, attacks: Sequence[AttackResult]) -> Methods:
    """What is so wherever an evaluation begins: draws, sizes, versions and papers."""
    crowd = attacks[0].crowd if attacks else ()
    return Methods(
        effort=chosen.effort,
        seed=chosen.seed,
        confidence=chosen.confidence,
        resamples=chosen.limits.resamples,
        lengths=tuple(sorted({e.length for e in crowd})),
        sizes=tuple(sorted({e.size for e in crowd})),
        trials=attacks[0].sizes if attacks else {},
        versions=_versions(),
        citations=CITATIONS,
    )


def _versions() -> dict[str, str]:
    found = {"voxrisk": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "torch", "faster-whisper", "pyworld"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
