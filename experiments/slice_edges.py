"""Which slices were neighbours? What shuffled slices give away, cut in either way.

    python experiments/slice_edges.py librispeech_eval

Utterances are cut into slices of 1 s or more, as Algorithm 1 cuts them and as ``slice --shuffle``
does. An attacker has all slices of all utterances without names and looks, for each one that has a
next, which of all others it is, by one thing at a time and by all together:

- equal samples: the beginning of a slice is found inside another one;
- prediction: the sound goes on across the cut as the last 40 ms foretell, sample by sample where
  slices touch. Where they do not, the attacker, who knows how the slices were made, divides the
  fade away and foretells what comes beyond the gap;
- spectrum, level and pitch beside the cut, the level of the whole slice, and the length of the
  silence at the edge;
- likeness of the voice (ECAPA-TDNN).

A figure counts right answers, first choice only. "Same speaker" counts how often the first choice
is at least a slice of the same speaker. The table is in docs/slicing.md.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.encoders import load_encoder
from voxrisk.corpus import read_audio, read_corpus
from voxrisk.corpus.audio import RATE, to_pcm
from voxrisk.protect.aligner import align
from voxrisk.protect.edges import FADE, level_and_fade
from voxrisk.protect.slicing import GAP, set_apart, slice_words
from voxrisk.protect.world import analyse

Array = NDArray[np.float64]
ORDER = 32
FITTED = int(0.04 * RATE)
COMPARED = int(0.004 * RATE)
EDGE = int(0.05 * RATE)
SHARED = 24  # equal samples in a row that are no chance


@dataclass(frozen=True)
class Piece:
    """A slice as the attacker has it, and where it comes from."""

    samples: Array
    utterance: str
    place: int
    speaker: str


def cut_all(corpus: str, every: int, clean: bool) -> list[Piece]:
    """The slices of every ``every``-th utterance, rounded to 16 bits as files are."""
    pieces = []
    for row in read_corpus(corpus)[::every]:
        samples = read_audio(row)
        words = align(samples, row.text or "")
        slices = slice_words(words, signal=len(samples) / RATE, duration=1.0)
        for place, one in enumerate(set_apart(slices, words) if clean else slices):
            part = samples[round(one.start * RATE) : round(one.end * RATE)]
            part = level_and_fade(part, rate=RATE) if clean else part
            pieces.append(Piece(to_pcm(part) / 32768.0, row.utterance, place, row.speaker))
    return pieces


def unfaded(samples: Array) -> Array:
    """The samples with their fades divided away, as far as 16 bits let them."""
    edge = round(FADE * RATE)
    rise = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    keep = int(np.argmax(rise > 0.02))
    open_ = samples.copy()
    open_[:edge] /= np.maximum(rise, 1e-9)
    open_[-edge:] /= np.maximum(rise[::-1], 1e-9)
    return open_[keep : len(open_) - keep]


def predictor(past: Array) -> Array:
    """Linear prediction by least squares with a little noise."""
    rows = np.lib.stride_tricks.sliding_window_view(past[:-1], ORDER)
    gram = rows.T @ rows + 1e-4 * np.mean(past**2) * len(rows) * np.eye(ORDER)
    return np.linalg.solve(gram, rows.T @ past[ORDER:])


def foretold(samples: Array, count: int) -> Array:
    """How the samples go on, as their last 40 ms say."""
    known = list(samples[-FITTED:])
    weights = predictor(np.array(known))
    for _ in range(count):
        following = float(weights @ known[-ORDER:])
        known.append(np.clip(following, -1, 1))
    return np.array(known[FITTED:])


def alike(ones: Array, others: Array) -> Array:
    """How well each of ``ones (n, t)`` fits each of ``others (m, t)``: 1 is the same."""
    energy = (ones**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None]
    found: Array = 2 * (ones @ others.T) / (energy + 1e-12)
    return found


def by_equal_samples(pieces: Sequence[Piece], clean: bool) -> Array:
    """1 where the first samples of a slice lie inside another one."""
    whole = [to_pcm(p.samples.astype(np.float32)) for p in pieces]
    texts = [w.tobytes() for w in whole]
    scores = np.zeros((len(pieces),) * 2)
    for j, start in enumerate(whole):
        head = start[:SHARED]
        if np.unique(head).size < 4:
            continue
        for i, text in enumerate(texts):
            scores[i, j] = i != j and head.tobytes() in text
    return scores


def surprise(tails: Array, heads: Array, weights: Array) -> Array:
    """How little each head ``(m, ORDER)`` surprises after each tail ``(n, ORDER)``."""
    found = np.empty((len(tails), len(heads)))
    for i, (tail, weight) in enumerate(zip(tails, weights, strict=True)):
        joined = np.hstack([np.tile(tail, (len(heads), 1)), heads])
        windows = np.lib.stride_tricks.sliding_window_view(joined[:, :-1], ORDER, axis=1)
        error = ((windows @ weight - heads) ** 2).sum(axis=1)
        found[i] = -np.log((error + 1e-8) / ((heads**2).sum(axis=1) + (tail**2).sum() + 1e-8))
    return found


def across_a_seam(pieces: Sequence[Piece]) -> Array:
    """Prediction from sample to sample over a cut without a gap, forwards and backwards."""
    ways = []
    for turn in (1, -1):
        sounds = [p.samples[::turn] for p in pieces]
        weights = np.array([predictor(s[-FITTED:]) for s in sounds])
        tails, heads = (np.array([s[part] for s in sounds])
                        for part in (slice(-ORDER, None), slice(ORDER)))  # fmt: skip
        ways.append(surprise(tails, heads, weights))
    return ways[0] + ways[1].T


def by_prediction(pieces: Sequence[Piece], clean: bool) -> Array:
    """Prediction over the cut, forwards and backwards; over the gap with its place searched."""
    if not clean:
        return across_a_seam(pieces)
    opened = [unfaded(p.samples) for p in pieces]
    gap, reach = round(GAP * RATE) + 2 * 15, 60
    ahead = np.array([foretold(o, gap + reach + COMPARED) for o in opened])
    back = np.array([foretold(o[::-1], gap + reach + COMPARED) for o in opened])
    starts = np.array([o[:COMPARED] for o in opened])
    ends = np.array([o[::-1][:COMPARED] for o in opened])
    best = np.full((len(pieces),) * 2, -np.inf)
    for at in range(max(gap - reach, 0), gap + reach + 1):
        there = slice(at, at + COMPARED)
        fits = alike(ahead[:, there], starts) + alike(back[:, there], ends).T
        best = np.maximum(best, fits)
    return best


def nearness(ends: Array, starts: Array) -> Array:
    """Less the distance between what stands at the end of one and at the start of another."""
    return -np.linalg.norm(ends[:, None] - starts[None], axis=2)


def by_spectrum(pieces: Sequence[Piece], clean: bool) -> Array:
    """Log power in 24 bands over 25 ms beside the cut; within the fade in the clean cut."""
    skip = round(FADE * RATE) // 2 if clean else 0

    def bands(edge: Array) -> Array:
        power = np.abs(np.fft.rfft(edge * np.hanning(len(edge)))) ** 2
        return np.log([part.mean() + 1e-9 for part in np.array_split(power, 24)])

    size = int(0.025 * RATE)
    ends = [bands(p.samples[len(p.samples) - skip - size : len(p.samples) - skip]) for p in pieces]
    starts = [bands(p.samples[skip : skip + size]) for p in pieces]
    return nearness(np.array(ends), np.array(starts))


def level(samples: Array) -> float:
    """In decibels."""
    return float(10 * np.log10(np.mean(samples**2) + 1e-9))


def by_level_at_the_edge(pieces: Sequence[Piece], clean: bool) -> Array:
    """Level of 50 ms beside the cut."""
    ends = [[level(p.samples[-EDGE:])] for p in pieces]
    return nearness(np.array(ends), np.array([[level(p.samples[:EDGE])] for p in pieces]))


def by_level(pieces: Sequence[Piece], clean: bool) -> Array:
    """Level of the whole slices."""
    levels = np.array([[level(p.samples)] for p in pieces])
    return nearness(levels, levels)


def by_pitch(pieces: Sequence[Piece], clean: bool) -> Array:
    """Pitch of the last voiced frames of one and the first of another."""
    ends, starts = [], []
    for piece in pieces:
        f0 = analyse(piece.samples.astype(np.float32)).f0
        voiced = np.log2(f0[f0 > 0]) if (f0 > 0).any() else np.zeros(1)
        ends.append([np.median(voiced[-10:])])
        starts.append([np.median(voiced[:10])])
    return nearness(np.array(ends), np.array(starts))


def by_silence(pieces: Sequence[Piece], clean: bool) -> Array:
    """How long it is quiet at the end of one and at the start of another."""

    def quiet(samples: Array) -> float:
        frames = samples[: len(samples) // 80 * 80].reshape(-1, 80)
        power = np.sqrt((frames**2).mean(axis=1))
        return float(np.argmax(power > 0.1 * power.max()))

    ends = [[quiet(p.samples[::-1])] for p in pieces]
    return nearness(np.array(ends), np.array([[quiet(p.samples)] for p in pieces]))


def by_voice(pieces: Sequence[Piece], clean: bool) -> Array:
    """Cosine of speaker vectors."""
    encoder = load_encoder("ecapa-voxceleb", threads=1)
    vectors = encoder.embed([p.samples.astype(np.float32) for p in pieces]).astype(np.float64)
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Array = vectors @ vectors.T
    return found


CUES: dict[str, Callable[[Sequence[Piece], bool], Array]] = {
    "equal samples": by_equal_samples,
    "prediction across the cut": by_prediction,
    "spectrum beside the cut": by_spectrum,
    "level beside the cut": by_level_at_the_edge,
    "level of the whole slice": by_level,
    "silence at the edge": by_silence,
    "pitch beside the cut": by_pitch,
    "likeness of the voice": by_voice,
}


def standing(scores: Array) -> Array:
    """Rank of every candidate for a slice, from 0 (worst) to 1 (first)."""
    return scores.argsort(axis=1).argsort(axis=1) / (scores.shape[1] - 1)


def count(scores: Array, pieces: Sequence[Piece]) -> tuple[float, int]:
    """Neighbours found by the first choice, and first choices of the same speaker.

    Where several candidates are equally good, one is guessed: the right one counts in part.
    """
    found, same, asked = 0.0, 0, 0
    place = {(p.utterance, p.place): j for j, p in enumerate(pieces)}
    for i, piece in enumerate(pieces):
        following = place.get((piece.utterance, piece.place + 1))
        if following is None:
            continue
        asked += 1
        row = scores[i].copy()
        row[i] = -np.inf
        best = np.flatnonzero(row == row.max())
        found += (following in best) / best.size
        same += pieces[best[0]].speaker == piece.speaker
    return found, same


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--every", type=int, default=12, help="take every n-th utterance")
    parser.add_argument("--cut", choices=("pause", "clean"), help="only this one")
    chosen = parser.parse_args()
    for clean in [c == "clean" for c in ("pause", "clean") if chosen.cut in (None, c)]:
        pieces = cut_all(chosen.corpus, chosen.every, clean)
        known = {(p.utterance, p.place) for p in pieces}
        pairs = sum((u, n + 1) in known for u, n in known)
        print(
            f"\n{'clean' if clean else 'pause'}: {len(pieces)} slices of "
            f"{len({p.utterance for p in pieces})} utterances, {pairs} neighbours; "
            f"by chance {pairs / (len(pieces) - 1):.1f}",
            flush=True,
        )
        together = np.zeros((len(pieces),) * 2)
        for name, cue in CUES.items():
            scores = cue(pieces, clean)
            found, same = count(scores, pieces)
            # A cue that is rarely right must not outvote one that is often right.
            together += standing(scores) * (found / pairs)
            print(f"{name}: {found:.1f}, same speaker {same}", flush=True)
        found, same = count(together, pieces)
        print(f"all together: {found:.1f}, same speaker {same}", flush=True)


if __name__ == "__main__":
    main()
