"""How often do the intervals of voxrisk cover the truth? The study behind decision 2.

Speakers are drawn from a known population (points with a spread of their own, utterances around
them, cosine scores), measured as voxrisk measures them, and each 95 % interval is held against the
truth. The truth is the figure of 20,000 speakers, or, for what depends on the number of speakers or
trials (ranks, log10 l, the crowd), its middle over all rounds.

    python experiments/coverage.py [--rounds 200] [--resamples 300] [scores similarity crowd wer]
"""

import argparse
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from voxrisk import measure
from voxrisk.measure import Protocol, Trials
from voxrisk.types import Embeddings, Estimate
from voxrisk.utility.estimates import ratio_estimate

SPEAKERS = (15, 20, 40)
# Spread of the utterances around a voice; None: the tested voices are other people's.
NOISE: dict[str, float | None] = {"5 %": 0.45, "17 %": 1.0, "40 %": 3.0, "none": None}
KEPT = {"strong": 0.0, "middling": 0.3, "weak": 0.7}  # how much of a voice a protection leaves
Floats = NDArray[np.float64]
Rounds = list[Mapping[str, Estimate]]


def voices(rng: np.random.Generator, n: int) -> Floats:
    """Points in a space of voices; some speakers are more distinct than others."""
    return rng.normal(size=(n, 8)) * rng.uniform(0.6, 1.4, (n, 1))


def sides(
    rng: np.random.Generator, n: int, noise: float | None
) -> tuple[tuple[Floats, int], tuple[Floats, int], float]:
    """Who is enrolled with 5 utterances and tested with 15, and their spread."""
    enrolled = voices(rng, n)
    tested = enrolled if noise is not None else voices(rng, n)
    return (enrolled, 5), (tested, 15), 1.0 if noise is None else noise


def unit(vectors: Floats) -> Floats:
    """Scaled to length one."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def scores(rng: np.random.Generator, n: int, noise: float | None) -> Trials:
    """Every test utterance against every enrolled speaker."""
    (enrolled, few), (tested, many), spread = sides(rng, n, noise)
    model = unit(enrolled + spread * rng.normal(size=enrolled.shape) / np.sqrt(few))
    trial = unit(tested[:, None] + spread * rng.normal(size=(n, many, 8))).reshape(-1, 8)
    left, right = np.divmod(np.arange(n * n * many), n * many)
    return measure.Trials(10 * (model @ trial.T).ravel(), left, right // many, segment=right)


def true_scores(noise: float | None, *, length: int = 1, n: int = 20_000) -> dict[str, float]:
    """The score figures of many speakers, each tested against thirty others."""
    rng = np.random.default_rng(7)
    (enrolled, few), (tested, _), spread = sides(rng, n, noise)
    model = unit(enrolled + spread * rng.normal(size=enrolled.shape) / np.sqrt(few))
    target, nontarget = [], []
    for _ in range(15):
        trial = unit(tested + spread / np.sqrt(length) * rng.normal(size=tested.shape))
        target.append(np.einsum("ij,ij->i", model, trial))
        for step in rng.choice(np.arange(1, n), 30, replace=False):
            nontarget.append(np.einsum("ij,ij->i", np.roll(model, step, axis=0), trial))
    found = measure.score_metrics(10 * np.concatenate(target), 10 * np.concatenate(nontarget))
    if noise is None:  # known exactly
        found |= {"d_ece": 0.0, "min_cllr": 1.0, "d_sys": 0.0, "rocch_eer": 0.5}
    del found["log10_l"]
    return found


def spoken(
    rng: np.random.Generator, side: tuple[Floats, int], spread: float, tag: str
) -> Embeddings:
    """Utterances of each speaker as embeddings."""
    centre, each = side
    speech = centre[:, None] + spread * rng.normal(size=(len(centre), each, centre.shape[1]))
    who = np.repeat([f"s{i:04d}" for i in range(len(centre))], each)
    names = np.array([f"{s}-{tag}{k}" for k, s in enumerate(who)])
    return Embeddings(names, who, speech.reshape(-1, centre.shape[1]), tag)


def similarity_sets(rng: np.random.Generator, n: int, kept: float) -> tuple[Trials, Trials, Trials]:
    """OO, OP and PP of eight segments each; a protected speaker has one pseudo-voice."""
    original, pseudo = voices(rng, n), rng.normal(size=(n, 8))
    o = spoken(rng, (original, 8), 0.7, "u")
    p = spoken(rng, (0.8 * (kept * original + (1 - kept) * pseudo), 8), 0.7, "u")
    compare = measure.segment_trials
    return compare(o, most=10**8), compare(o, p, most=10**8), compare(p, most=10**8)


def study_scores(rounds: int, resamples: int) -> Iterator[tuple[str, Rounds, dict[str, float]]]:
    """EERs, costs, ZEBRA, D_sys and ranks."""
    for name, noise in NOISE.items():
        truth = true_scores(noise)
        for n in SPEAKERS:
            rng = np.random.default_rng([n, 1])
            found: Rounds = [
                measure.measure_scores(scores(rng, n, noise), resamples=resamples, seed=i)
                for i in range(rounds)
            ]
            yield f"EER {name}, {n} speakers", found, truth


def study_similarity(rounds: int, resamples: int) -> Iterator[tuple[str, Rounds, dict[str, float]]]:
    """DeID and G_VD over pairs of single segments."""
    for name, kept in KEPT.items():
        oo, op, pp = similarity_sets(np.random.default_rng(5), 250, kept)
        whole = measure.evaluate_similarity(oo, crossed=op, protected=pp, resamples=0)
        truth = {key: e.value for key, e in whole.items()}
        for n in SPEAKERS:
            rng = np.random.default_rng([n, 3])
            found: Rounds = []
            for i in range(rounds):
                oo, op, pp = similarity_sets(rng, n, kept)
                found.append(
                    measure.evaluate_similarity(
                        oo, crossed=op, protected=pp, resamples=resamples, seed=i
                    )
                )
            yield f"{name} protection, {n} speakers", found, truth


def study_crowd(rounds: int, resamples: int) -> Iterator[tuple[str, Rounds, dict[str, float]]]:
    """Singling Out, Linkability and the score figures by L and N."""
    for name, noise in NOISE.items():
        truth = {
            f"{key}, L = {length}, {size}": value
            for length in (1, 3)
            for key, value in true_scores(noise, length=length).items()
            if key in ("rocch_eer", "d_ece")
            for size in ("N = 5", "all")
        }
        for n in SPEAKERS:
            rng = np.random.default_rng([n, 2])
            found: Rounds = []
            for i in range(rounds):
                enrolled, tested, spread = sides(rng, n, noise)
                crowd = measure.measure_crowd(
                    enrolled=spoken(rng, enrolled, spread, "e"),
                    tested=spoken(rng, tested, spread, "t"),
                    protocol=Protocol(lengths=(1, 3), sizes=(5, n), trials=10, threads=1,
                                      resamples=resamples, seed=i),
                )  # fmt: skip
                found.append({_at(e, n): e for e in crowd.estimates})
            yield f"EER {name}, {n} speakers", found, truth


def _at(e: Estimate, n: int) -> str:
    size = "all" if e.parameters["N"] == n else f"N = {e.parameters['N']}"
    return f"{e.name}, L = {e.parameters['L']}, {size}"


def study_wer(rounds: int, resamples: int) -> Iterator[tuple[str, Rounds, dict[str, float]]]:
    """Word error rate of speakers who differ."""
    for rate in (0.02, 0.1, 0.4):
        for n in SPEAKERS:
            rng = np.random.default_rng([n, 4])
            found: Rounds = []
            for i in range(rounds):
                speaker = np.repeat(np.arange(n), 12)
                words = rng.integers(5, 30, speaker.size)
                own = rng.beta(4 * rate, 4 * (1 - rate), n)  # speakers differ a lot
                errors = rng.binomial(words, own[speaker])
                found.append(
                    {"wer": ratio_estimate("wer", errors, speaker.astype(str).tolist(),
                                           denominator=words, chance=1.0, source="", rate=True,
                                           resamples=resamples, seed=i)}
                )  # fmt: skip
            yield f"WER {rate:.0%}, {n} speakers", found, {"wer": rate}


STUDIES: dict[str, Callable[[int, int], Iterator[tuple[str, Rounds, dict[str, float]]]]] = {
    "scores": study_scores,
    "similarity": study_similarity,
    "crowd": study_crowd,
    "wer": study_wer,
}


def show(title: str, found: Rounds, truth: Mapping[str, float]) -> None:
    """One line for each figure: truth, mean, how often it lies below, within, above, and width."""
    print(title)
    for name in dict.fromkeys(key for figures in found for key in figures):
        given = [figures[name] for figures in found if name in figures]
        value = np.array([e.value for e in given])
        low, high = np.array([(e.interval.low, e.interval.high) for e in given if e.interval]).T
        middle = np.median(value) if "log10" in name or "median" in name else value.mean()
        true = truth.get(name, float(middle))
        below, above = (high < true - 1e-9).mean(), (low > true + 1e-9).mean()
        print(
            f"  {name:26s} truth {true:7.4f}  mean {value.mean():7.4f}  covered "
            f"{1 - below - above:4.0%}  too low {below:4.0%}  too high {above:4.0%}  "
            f"width {np.mean(high - low):.3f}  of {len(given)}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*STUDIES, []], default=list(STUDIES))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=300)
    chosen = parser.parse_args()
    for part in chosen.parts or STUDIES:
        for title, found, truth in STUDIES[part](chosen.rounds, chosen.resamples):
            show(title, found, truth)
