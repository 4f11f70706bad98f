"""How often do the intervals of voxrisk cover the truth? The study behind decision 2.

Speakers are drawn from a known population (points with a spread of their own, utterances around
them, cosine scores). The truth is the figure of 1,000 speakers. For each figure: its bias on a
small sample, and how often three kinds of speaker-bootstrap interval with 95 % cover the truth.

    python experiments/coverage.py [--rounds 150]
"""

import argparse

import numpy as np
from scipy.special import ndtr, ndtri

from voxrisk import measure
from voxrisk.measure import Trials


def draw(rng: np.random.Generator, speakers: int, noise: float) -> Trials:
    """Each speaker enrols with the mean of 5 utterances and is tried with 15 others."""
    voice = rng.normal(size=(speakers, 8)) * rng.uniform(0.6, 1.4, (speakers, 1))
    enroll = voice + noise * rng.normal(size=voice.shape) / np.sqrt(5)
    trial = (voice[:, None] + noise * rng.normal(size=(speakers, 15, 8))).reshape(-1, 8)
    enroll /= np.linalg.norm(enroll, axis=1, keepdims=True)
    trial /= np.linalg.norm(trial, axis=1, keepdims=True)
    left, right = np.divmod(np.arange(speakers * speakers * 15), speakers * 15)
    return measure.trials(10 * (enroll @ trial.T).ravel(), left, right // 15, segment=right)


def ends(draws: np.ndarray, value: float) -> dict[str, tuple[float, float]]:
    """Percentile, basic and bias-corrected interval."""
    low, high = np.quantile(draws, [0.025, 0.975])
    below = ((draws < value).mean() + (draws <= value).mean()) / 2
    shift = 2 * ndtri(np.clip(below, 0.002, 0.998))
    corrected = np.quantile(draws, ndtr(shift + ndtri([0.025, 0.975])))
    return {
        "percentile": (low, high),
        "basic": (2 * value - high, 2 * value - low),
        "corrected": tuple(corrected),
    }


def study(speakers: int, noise: float, rounds: int) -> None:
    """Print bias and coverage of every figure for one kind of population."""
    rng = np.random.default_rng(7)
    whole = draw(rng, 1000, noise)
    truth = measure.score_metrics(whole.target, whole.nontarget)
    bias = dict.fromkeys(truth, 0.0)
    covered = {name: {"percentile": 0, "basic": 0, "corrected": 0} for name in truth}
    for i in range(rounds):
        scored = draw(rng, speakers, noise)
        value = measure.score_metrics(scored.target, scored.nontarget)
        weights = measure.speaker_weights(speakers, resamples=300, seed=i)
        for name, draws in measure.bootstrap(scored, weights).items():
            bias[name] += (value[name] - truth[name]) / rounds
            for kind, (low, high) in ends(draws, value[name]).items():
                covered[name][kind] += low <= truth[name] <= high
    print(f"{speakers} speakers, noise {noise}")
    print(f"  {'figure':18s} {'truth':>8s} {'bias':>8s}  percentile  basic  bias-corrected")
    for name, counts in covered.items():
        shares = "".join(f"{count / rounds:10.0%}" for count in counts.values())
        print(f"  {name:18s} {truth[name]:8.4f} {bias[name]:+8.4f} {shares}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    chosen = parser.parse_args()
    for speakers, noise in ((20, 1.0), (40, 1.0), (40, 3.0)):
        study(speakers, noise, chosen.rounds)
