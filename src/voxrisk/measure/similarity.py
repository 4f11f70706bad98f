"""Voice similarity matrices, de-identification (DeID) and gain of voice distinctiveness (G_VD).

Reference: Noé et al., "Speech Pseudonymisation Assessment Using Voice Similarity Matrices",
Interspeech 2020. O is original, P protected speech: OO compares originals with originals, OP
originals with protected segments, PP protected with protected ones.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure import _kernels
from voxrisk.measure._compiled import compiled
from voxrisk.measure.calibration import pav
from voxrisk.measure.conversations import shuffled
from voxrisk.measure.curve import Floats
from voxrisk.measure.resampling import (
    LANES,
    Array,
    SortedTrials,
    curve_counts,
    lanes,
    running_sums,
    sort_trials,
)
from voxrisk.measure.scored_trials import Trials
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, InputError


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """How alike the voices of two sets are, speaker by speaker.

    Attributes:
        speakers: Names, in the order of rows and columns.
        matrix: ``(n, n)`` S(i, j) in [0, 1]: posterior that speaker i of the first set and j of the
            second are one, from the mean calibrated LLR of their segments, at equal priors.
    """

    speakers: tuple[str, ...]
    matrix: Floats

    def renamed(self, alias: Mapping[str, str]) -> "Similarity":
        """The same with speakers under other names, in the order of these names."""
        order = sorted(range(len(self.speakers)), key=lambda i: alias[self.speakers[i]])
        names = tuple(alias[self.speakers[i]] for i in order)
        return Similarity(names, self.matrix[np.ix_(order, order)])


def segment_trials(
    first: Embeddings, second: Embeddings | None = None, *, most: int = 1_000_000, seed: int = 0
) -> Trials:
    """Compare single segments by cosine, every one with every other: the pairs of Eq. 2.

    OO is ``segment_trials(original)``, OP ``segment_trials(original, protected)``, PP
    ``segment_trials(protected)``. Two segments with the same utterance id are never compared: that
    is a segment with itself or, in OP, with its own protected version. Where the trial list of a
    challenge decides which pairs there are, or means of several segments are enrolled, the figures
    are others: VoicePrivacy 2020 B1 has G_VD -4 dB by enrolment means and -8 dB by segments.

    Args:
        first: Segments of the rows.
        second: Segments of the columns; by default those of the rows.
        most: Highest number of pairs. Where there would be more, every speaker keeps the same
            number of segments, as many as fit and at least two, drawn by ``seed``.
        seed: Of that draw. It depends on the ids, so that the same segments are drawn of original
            and protected speech.

    Raises:
        InputError: If the dimensions differ.
    """
    rows = _few_segments(first, most, seed)
    columns = rows if second is None else _few_segments(second, most, seed)
    if rows.vectors.shape[1] != columns.vectors.shape[1]:
        raise InputError(
            f"{rows.source} has {rows.vectors.shape[1]} dimensions and {columns.source} has "
            f"{columns.vectors.shape[1]}; embed both with the same extractor"
        )
    left, right = unit_length(rows.vectors), unit_length(columns.vectors)
    names, speaker = np.unique(np.concatenate((rows.speaker, columns.speaker)), return_inverse=True)
    segment = np.unique(np.concatenate((rows.utterance, columns.utterance)), return_inverse=True)[1]
    cut = len(left)
    keep = segment[:cut, None] != segment[None, cut:]
    enroll, trial = (
        np.broadcast_to(code, keep.shape)[keep].astype(np.int32)
        for code in (speaker[:cut, None], speaker[None, cut:])
    )
    query = np.broadcast_to(np.arange(len(right), dtype=np.int32), keep.shape)[keep]
    score = (left @ right.T)[keep]
    return Trials.coded(score, enroll == trial, enroll, trial, query, tuple(map(str, names)))


def _few_segments(embeddings: Embeddings, most: int, seed: int) -> Embeddings:
    """At most so many segments of each speaker that all pairs of them are ``most``, or so."""
    n = embeddings.speaker.size
    if n * n <= most:
        return embeddings
    _, group, rank = shuffled(embeddings, seed, 0x53)
    each = np.bincount(group)
    # The highest number for each speaker with which the total stays within the square root.
    limits = np.arange(2, int(each.max()) + 1)
    totals = np.minimum(each[None], limits[:, None]).sum(axis=1)
    fits = limits[totals**2 <= most]
    keep = rank < (fits[-1] if fits.size else 2)
    return Embeddings(
        embeddings.utterance[keep],
        embeddings.speaker[keep],
        embeddings.vectors[keep],
        embeddings.source,
    )


def similarity_matrix(scored: Trials) -> Similarity:
    """How alike the voice of each speaker is to each other's, as the attacker hears it.

    S(i, j) = sigmoid(mean LLR over the segment pairs of i and j), Eq. 2; the scores are calibrated
    on their own by PAV with Laplace's rule. Only speakers on both sides have a row. Trials of a
    segment with itself must not be in ``scored``.

    Raises:
        InputError: If fewer than two speakers stand on both sides, or two were never compared.
    """
    kept = both_sides(scored)
    llr = pav(kept.roc, laplace=True)(kept.score)
    n = len(kept.speakers)
    cell = kept.enroll_speaker.astype(np.int64) * n + kept.trial_speaker
    count = np.bincount(cell, minlength=n * n)
    if (empty := np.flatnonzero(count == 0)).size:
        i, j = divmod(int(empty[0]), n)
        raise InputError(
            f"{empty.size} of {n * n} pairs of speakers were never compared, the first "
            f"{kept.speakers[i]!r} with {kept.speakers[j]!r}; a similarity matrix needs every pair"
        )
    mean = np.bincount(cell, llr, n * n) / count
    return Similarity(kept.speakers, (1.0 / (1.0 + np.exp(-mean))).reshape(n, n))


def both_sides(scored: Trials) -> Trials:
    """Only the trials among speakers that are both enrolled and tried."""
    n = len(scored.speakers)
    common = np.zeros(n, bool)
    common[np.intersect1d(scored.enroll_speaker, scored.trial_speaker)] = True
    if common.sum() < 2:
        raise InputError("a similarity matrix needs two speakers on both sides of the comparison")
    return scored.among(common)


def diagonal_dominance(similarity: Similarity, *, compat: str | None = None) -> float:
    """How much more a voice is like itself than like others: D_diag, Eq. 3.

    |mean of the diagonal - mean of the rest|, from 0 (no voice stands out) to 1.

    Args:
        similarity: A voice similarity matrix.
        compat: ``"vpc2020"`` averages the upper triangle only, as the VoicePrivacy 2020 script does
            although OP is not symmetric (DeID 0.756 instead of 0.774 on one of its sets).

    >>> import numpy as np
    >>> diagonal_dominance(Similarity(("a", "b"), np.eye(2)))
    1.0
    """
    if compat not in (None, "vpc2020"):
        raise InputError(f"compat is {compat!r}; similarity knows only 'vpc2020'")
    matrix = similarity.matrix
    rest = np.triu(np.ones_like(matrix, bool), 1) if compat else ~np.eye(len(matrix), dtype=bool)
    return float(abs(np.diag(matrix).mean() - matrix[rest].mean()))


def de_identification(
    original: Similarity, crossed: Similarity, *, compat: str | None = None
) -> float:
    """How far protection hides which original voice a protected voice belongs to.

    DeID = 1 - D_diag(OP)/D_diag(OO), Eq. 4. 1: the voices cannot be matched (the chance level);
    0: protection did nothing; below 0: it made the match easier.

    Args:
        original: Matrix OO.
        crossed: Matrix OP.
        compat: See :func:`diagonal_dominance`.
    """
    return 1.0 - _ratio(crossed, original, compat)


def distinctiveness_gain(
    original: Similarity, protected: Similarity, *, compat: str | None = None
) -> float:
    """How well protected voices can still be told apart from one another, in decibel.

    G_VD = 10·log10(D_diag(PP)/D_diag(OO)), Eq. 5. 0: as well as the originals; negative: worse.

    Args:
        original: Matrix OO.
        protected: Matrix PP.
        compat: See :func:`diagonal_dominance`.

    Raises:
        InputError: If no voice stands out in OO, or none in PP (the gain would be -inf).
    """
    ratio = _ratio(protected, original, compat)
    if ratio == 0.0:
        raise InputError("no protected voice stands out at all (D_diag(PP) is 0): G_VD is -inf")
    return float(10.0 * np.log10(ratio))


def _ratio(part: Similarity, original: Similarity, compat: str | None) -> float:
    if part.speakers != original.speakers:
        odd = sorted(set(part.speakers) ^ set(original.speakers)) or ["(order)"]
        raise InputError(
            f"the similarity matrices are not of the same speakers; only in one: {', '.join(odd)}"
        )
    whole = diagonal_dominance(original, compat=compat)
    if whole == 0.0:
        raise InputError(
            "no original voice stands out (D_diag(OO) is 0), so DeID and G_VD are undefined: the "
            "speaker recogniser tells no original voices apart; use a better one"
        )
    return diagonal_dominance(part, compat=compat) / whole


def resampled_dominance(scored: Trials, weights: NDArray[np.int32]) -> Floats:
    """D_diag ``(resamples,)`` under speaker weights, calibrated anew each time; NaN: a class empty.

    ``weights`` ``(resamples, n_speakers)`` belong to the speakers of :func:`both_sides`.
    """
    order = sort_trials(both_sides(scored))
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(_dominance, np.array_split(weights, 16), [order] * 16)
        return np.concatenate(list(parts))


@compiled
def _dominance(weights: Array, order: SortedTrials) -> Array:
    out = np.full(weights.shape[0], np.nan)
    runs = order.target_places[order.run_cuts]
    gaps = order.nontarget_places[order.gap_cuts]
    for start in range(0, weights.shape[0], LANES):
        speaker_weight, pair_weight = lanes(weights, start, order.pairs)
        t_lanes = running_sums(speaker_weight, order.speaker, order.target_places)
        n_lanes = running_sums(pair_weight, order.pair, order.nontarget_places)
        for lane in range(min(LANES, weights.shape[0] - start)):
            t_sums, n_sums = t_lanes[:, lane].copy(), n_lanes[:, lane].copy()
            if t_sums[-1] == 0.0 or n_sums[-1] == 0.0:
                continue
            target, equal, gap, which = curve_counts(t_sums, n_sums, order)
            bt, bn, first = _kernels.pav(target, equal, gap)
            llr = _kernels.laplace_llr(bt, bn)
            first = which[np.maximum(first, 0)]  # the first block begins below every run anyway
            own = _mean_llr(order.speaker, _block_cuts(runs, first), llr, weights.shape[1])
            other = _mean_llr(order.pair, _block_cuts(gaps, first), llr, order.pairs.shape[0])
            same = _weighted_similarity(own, speaker_weight[:, lane])
            out[start + lane] = abs(same - _weighted_similarity(other, pair_weight[:, lane]))
    return out


@compiled
def _block_cuts(cuts: Array, first: Array) -> Array:
    """Where the trials of each block begin, given where those of each run begin."""
    places = np.empty(first.size + 1, np.int64)
    for b in range(first.size):
        places[b] = cuts[first[b]] if b > 0 else 0
    places[-1] = cuts[-1]
    return places


@compiled
def _mean_llr(member: Array, cuts: Array, llr: Array, n: int) -> Array:
    total = np.zeros(n)
    count = np.zeros(n)
    for b in range(llr.size):
        for i in range(cuts[b], cuts[b + 1]):
            total[member[i]] += llr[b]
            count[member[i]] += 1.0
    for m in range(n):
        total[m] /= max(count[m], 1.0)
    return total


@compiled
def _weighted_similarity(llr: Array, weight: Array) -> float:
    total = mass = 0.0
    for m in range(llr.size):
        total += weight[m] / (1.0 + np.exp(-llr[m]))
        mass += weight[m]
    return total / mass
