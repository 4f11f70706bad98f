"""Hidden Markov models of phones, trained on speech and its text from a flat start; alignment.

The benchmark second_aligner.py uses it as a judge. Recipe: 13 mel-cepstra with differences,
normalised for each speaker; three states a phone, with diagonal Gaussian mixtures that are split
and trained by Viterbi; optional silence between words; all pronunciations of the dictionary; words
out of it are phones of an "unknown" kind.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kaldi_native_fbank
import numpy as np
import pocketsphinx
from numba import njit
from numpy.typing import NDArray

from voxrisk.corpus import Utterance, read_audio
from voxrisk.protect.slicing import Word

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
States = dict[tuple[str, int], int]
Way = tuple[str, ...]
Times = dict[str, list[Word]]

SILENCE, UNKNOWN = "SIL", "UNK"
STATES = 3
CEPSTRA = 13
FLOOR = 0.02  # of a variance, where the variance of all speech is 1
FEWEST = 20.0  # frames that a Gaussian needs to be estimated anew
HOP = 0.01
PLAN = ((1, 8), (2, 4), (4, 4), (8, 5), (16, 5))  # Gaussians a state, passes


@dataclass(frozen=True)
class Model:
    """Mixtures: log weights ``(s, m)``, means and variances ``(s, m, d)``; log chance to stay."""

    weights: Floats
    means: Floats
    variances: Floats
    stay: Floats


@dataclass(frozen=True)
class Graph:
    """All ways to say a text: states of nodes, arcs into them (CSR), words (−1: silence)."""

    state: Ints
    first: Ints
    arcs: Ints
    word: Ints
    begins: NDArray[np.bool_]
    ends: NDArray[np.bool_]


def cepstra(samples: Floats) -> Floats:
    """Frame i is centred on (i + ½)·HOP, so that it stands for i·HOP … (i + 1)·HOP."""
    options = kaldi_native_fbank.MfccOptions()
    options.frame_opts.dither = 0
    options.frame_opts.snip_edges = False
    options.frame_opts.frame_shift_ms = HOP * 1000
    options.mel_opts.num_bins = 26
    options.num_ceps = CEPSTRA
    options.use_energy = False
    stream = kaldi_native_fbank.OnlineMfcc(options)
    stream.accept_waveform(16_000, (samples * 32768).tolist())
    stream.input_finished()
    return np.stack([stream.get_frame(i) for i in range(stream.num_frames_ready)])


def shifted(frames: Floats, by: int) -> Floats:
    return frames[np.clip(np.arange(len(frames)) + by, 0, len(frames) - 1)]


def slope(frames: Floats) -> Floats:
    """By how much the frames rise, over five of them."""
    return (
        2 * (shifted(frames, 2) - shifted(frames, -2)) + shifted(frames, 1) - shifted(frames, -1)
    ) / np.float32(10)


def features(rows: Sequence[Utterance]) -> list[Floats]:
    """Cepstra with two orders of differences, mean 0 and variance 1 for each speaker."""
    found = []
    for row in rows:
        frames = cepstra(read_audio(row))
        found.append(np.hstack([frames, slope(frames), slope(slope(frames))]))
    for speaker in {row.speaker for row in rows}:
        mine = [k for k, row in enumerate(rows) if row.speaker == speaker]
        every = np.concatenate([found[k] for k in mine])
        mean, spread = every.mean(axis=0), every.std(axis=0)
        for k in mine:
            found[k] = (found[k] - mean) / spread
    return found


def spoken(row: Utterance) -> list[str]:
    return re.findall(r"[\w']+", row.text or "")


def dictionary() -> dict[str, list[Way]]:
    known: dict[str, list[Way]] = {}
    path = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict"))
    for line in path.read_text().splitlines():
        name, *phones = line.split()
        known.setdefault(name.split("(")[0], []).append(tuple(phones))
    return known


def ways(word: str, known: dict[str, list[Way]]) -> list[Way]:
    plain = word.lower()
    unknown = [(UNKNOWN,) * max(2, round(0.8 * len(word)))]
    return known.get(plain) or known.get(plain.strip("'")) or unknown


def states_of(way: Sequence[str], states: States) -> list[int]:
    """The states of a way to say a word."""
    return [states.setdefault((phone, k), len(states)) for phone in way for k in range(STATES)]


def graph(words: Sequence[list[Way]], states: States) -> Graph:
    """A chain of words, each said in one of its ways, with or without silence around it."""
    state: list[int] = []
    into: list[list[int]] = []
    owner: list[int] = []

    def chain(way: Sequence[str], before: list[int], word: int) -> int:
        for number in states_of(way, states):
            into.append(before)
            before = [len(state)]
            state.append(number)
            owner.append(word)
        return len(state) - 1

    open_ends: list[int] = [-1]
    for number, choices in enumerate(words):
        open_ends = [*open_ends, chain([SILENCE], open_ends, -1)]
        open_ends = [chain(choice, open_ends, number) for choice in choices]
    open_ends = [*open_ends, chain([SILENCE], open_ends, -1)]
    ends = np.zeros(len(state), dtype=np.bool_)
    ends[open_ends] = True
    arcs = [[k for k in sources if k >= 0] for sources in into]
    return Graph(
        np.array(state, dtype=np.int32),
        np.cumsum([0, *map(len, arcs)]).astype(np.int32),
        np.array([k for sources in arcs for k in sources], dtype=np.int32),
        np.array(owner, dtype=np.int32),
        np.array([-1 in sources for sources in into]),
        ends,
    )


@njit(cache=True)
def viterbi(scores, state, first, arcs, begins, ends, stay, leave):  # type: ignore[no-untyped-def]
    """The best node for each frame; ``scores (t, s)`` are log-likelihoods of the states."""
    frames, nodes = scores.shape[0], state.shape[0]
    came = np.empty((frames, nodes), dtype=np.int32)
    before = np.full(nodes, -np.inf, dtype=np.float32)
    for node in range(nodes):
        if begins[node]:
            before[node] = scores[0, state[node]]
    now = np.empty_like(before)
    for t in range(1, frames):
        for node in range(nodes):
            best, source = before[node] + stay[state[node]], node
            for k in range(first[node], first[node + 1]):
                other = before[arcs[k]] + leave[state[arcs[k]]]
                if other > best:
                    best, source = other, arcs[k]
            now[node] = best + scores[t, state[node]]
            came[t, node] = source
        before, now = now, before
    last, total = -1, -np.inf
    for node in range(nodes):
        if ends[node] and before[node] > total:
            last, total = node, before[node]
    path = np.empty(frames, dtype=np.int32)
    for t in range(frames - 1, -1, -1):
        path[t] = last
        if t > 0:
            last = came[t, last]
    return path, total


def scores(frames: Floats, model: Model) -> Floats:
    """Log-likelihood ``(t, s)`` of the best Gaussian of each state."""
    s, m, d = model.means.shape
    precision = 1 / model.variances
    constant = model.weights - 0.5 * (
        np.log(2 * np.pi * model.variances) + model.means**2 * precision
    ).sum(axis=2)
    matrix = np.vstack(
        [(model.means * precision).reshape(s * m, d).T, -0.5 * precision.reshape(s * m, d).T]
    )
    found = np.hstack([frames, frames**2]) @ matrix + constant.reshape(1, s * m)
    return np.ascontiguousarray(found.reshape(len(frames), s, m).max(axis=2))


def viterbi_path(frames: Floats, text: Graph, model: Model) -> tuple[Ints, float]:
    """Best node for each frame, and the log-likelihood."""
    used, state = np.unique(text.state, return_inverse=True)
    part = Model(model.weights[used], model.means[used], model.variances[used], model.stay[used])
    leave = np.log1p(-np.exp(part.stay)).astype(np.float32)
    path, total = viterbi(
        scores(frames, part), state.astype(np.int32), text.first, text.arcs,
        text.begins, text.ends, part.stay, leave,
    )  # fmt: skip
    return path, float(total)


def uniform(words: Sequence[list[Way]], frames: int, states: States) -> Ints:
    """The flat start: the first way to say each word, silence at both ends, all equally long."""
    ways_said = [(SILENCE,), *(choices[0] for choices in words), (SILENCE,)]
    chain = [state for way in ways_said for state in states_of(way, states)]
    return np.array(chain, dtype=np.int32)[np.arange(frames) * len(chain) // frames]


@njit(cache=True)
def accumulate(frames, state, constant, means, precision, count, first, second):  # type: ignore[no-untyped-def]
    """Add each frame to the Gaussians of its state, by their shares."""
    m, d = means.shape[1], means.shape[2]
    share = np.empty(m)
    for t in range(frames.shape[0]):
        s = state[t]
        for k in range(m):
            total = 0.0
            for i in range(d):
                gap = frames[t, i] - means[s, k, i]
                total += gap * gap * precision[s, k, i]
            share[k] = constant[s, k] - 0.5 * total
        best = share.max()
        for k in range(m):
            share[k] = np.exp(share[k] - best)
        every = share.sum()
        for k in range(m):
            part = share[k] / every
            if part > 1e-3:
                count[s, k] += part
                for i in range(d):
                    first[s, k, i] += part * frames[t, i]
                    second[s, k, i] += part * frames[t, i] ** 2


def estimate(speech: Sequence[Floats], labels: Sequence[Ints], old: Model) -> Model:
    """Gaussians from the frames of their states; those with too few frames stay as they are."""
    count = np.zeros(old.weights.shape)
    first, second = np.zeros(old.means.shape), np.zeros(old.means.shape)
    constant = old.weights - 0.5 * np.log(old.variances).sum(axis=2)
    runs = np.zeros(len(count))
    for frames, state in zip(speech, labels, strict=True):
        accumulate(frames, state, constant, old.means, 1 / old.variances, count, first, second)
        np.add.at(runs, state[np.flatnonzero(np.diff(state, append=-1))], 1)
    total = np.maximum(count, 1e-9)[:, :, None]
    means = first / total
    variances = np.maximum(second / total - means**2, FLOOR)
    enough = (count >= FEWEST)[:, :, None]
    frames_of = np.maximum(count.sum(axis=1), 1e-9)
    stay = np.clip(1 - runs / frames_of, 0.05, 0.99)
    return Model(
        np.log(np.maximum(count / frames_of[:, None], 1e-6)).astype(np.float32),
        np.where(enough, means, old.means).astype(np.float32),
        np.where(enough, variances, old.variances).astype(np.float32),
        np.log(stay).astype(np.float32),
    )


def split(model: Model, size: int) -> Model:
    """Split the heaviest Gaussian of each state in two, until there are ``size`` of them."""
    while model.weights.shape[1] < size:
        s = np.arange(len(model.weights))
        heavy = model.weights.argmax(axis=1)
        step = 0.2 * np.sqrt(model.variances[s, heavy])
        weights, means = model.weights.copy(), model.means.copy()
        weights[s, heavy] -= np.float32(np.log(2))
        means[s, heavy] -= step
        model = Model(
            np.hstack([weights, weights[s, heavy][:, None]]),
            np.concatenate([means, means[s, heavy][:, None] + 2 * step[:, None]], axis=1),
            np.concatenate([model.variances, model.variances[s, heavy][:, None]], axis=1),
            model.stay,
        )
    return model


def train(speech: Sequence[Floats], words: Sequence[list[list[Way]]]) -> tuple[Model, States]:
    """Viterbi training from a flat start, with more and more Gaussians."""
    states: States = {}
    texts = [graph(one, states) for one in words]
    labels = [uniform(one, len(x), states) for one, x in zip(words, speech, strict=True)]
    flat = np.zeros((len(states), 1, speech[0].shape[1]), dtype=np.float32)
    model = estimate(speech, labels, Model(flat[:, :, 0], flat, flat + 1, flat[:, 0, 0]))
    for size, passes in PLAN:
        model = split(model, size)
        for _ in range(passes):
            model = estimate(speech, labels, model)
            found = [viterbi_path(*one, model) for one in zip(speech, texts, strict=True)]
            labels = [text.state[path] for text, (path, _) in zip(texts, found, strict=True)]
        likelihood = sum(total for _, total in found) / sum(map(len, speech))
        print(f"  {size} Gaussians a state: log-likelihood {likelihood:.2f} a frame", flush=True)
    return estimate(speech, labels, model), states


def align(
    rows: Sequence[Utterance],
    speech: Sequence[Floats],
    words: Sequence[list[list[Way]]],
    trained: tuple[Model, States],
) -> Times:
    """Times of the words; none for words out of the dictionary."""
    model, states = trained
    found = {}
    for row, frames, choices in zip(rows, speech, words, strict=True):
        text = graph(choices, states)
        owner = text.word[viterbi_path(frames, text, model)[0]]
        times = []
        for k, (name, ways_said) in enumerate(zip(spoken(row), choices, strict=True)):
            mine = np.flatnonzero(owner == k)
            known = ways_said[0][0] != UNKNOWN
            times.append(Word(name, mine[0] * HOP, (mine[-1] + 1) * HOP) if known else Word(name))
        found[row.utterance] = times
    return found
