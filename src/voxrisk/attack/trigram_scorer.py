"""Which slice came next, by its words: a trigram model over the cut.

Maouche et al. (Interspeech 2022, Section 5.1) score "v follows w" by the probability of the last
two words of w and the first two of v, SF(w, v) = P(w₋₂ w₋₁ v₁ v₂). For a given w only

    P(v₁ | w₋₂ w₋₁) · P(v₂ | w₋₁ v₁)

tells candidates apart, and it depends on the edges alone: slices that end or begin alike share
their scores. Nor need pairs of edges be asked for one by one. In a model with back-off most
probabilities are those of a shorter history, which all rows share, and a row differs from them only
in the n-grams listed for its own last words.

That score favours slices that begin with frequent words whatever stands before them. The **lift**
P(v₁ v₂ | w) / P(v₁ v₂) does not, and finds more. Both are given.

Slices of one word: nothing is known before the word of w, so P(v₁ | w₋₁) is taken; the factor of
the second word that v lacks is the mean (of logarithms) over all candidates that have two. A
candidate without words gets the mean of the row. After a slice without words nothing is likelier
than anything else: all its scores are 0. Unknown words: see :mod:`voxrisk.language.ngram`.
"""

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.successors import Indices, Scores
from voxrisk.attack.words import words_of
from voxrisk.language.ngram import NOTHING, NGram

Floats = NDArray[np.float64]
KEPT = 1024  # last words whose second factors are remembered


class TrigramScorer:
    """A successor scorer of texts, see :mod:`voxrisk.attack.successors`.

    Args:
        texts: The words of each slice.
        model: The language model.
        lift: Whether the probability of the candidate by itself is divided out.
    """

    def __init__(self, texts: Sequence[Sequence[str]], model: NGram, *, lift: bool = False) -> None:
        ids = [model.ids(normalised(words)) for words in texts]
        self.model, self.lift, self.n = model, lift, len(ids)
        self.before = np.array([_edge(row[-2:][::-1])[::-1] for row in ids], np.int64)
        start = np.array([_edge(row[:2]) for row in ids], np.int64)
        self.worded, self.long = start[:, 0] != NOTHING, start[:, 1] != NOTHING
        self.first, self.first_of = np.unique(start[self.worded, 0], return_inverse=True)
        pairs, self.pair_of = np.unique(start[self.long], axis=0, return_inverse=True)
        self.pair_first = np.searchsorted(self.first, pairs[:, 0])
        self.pair_keys = self.pair_first * model.size + pairs[:, 1]  # ascending, as the pairs are
        nothing = np.full(len(pairs), NOTHING)
        self.shared = model.log_probs(nothing, pairs[:, 0], pairs[:, 1])
        self.column = np.full(model.size, -1, np.int64)
        self.column[self.first] = np.arange(self.first.size)
        self._second = functools.lru_cache(KEPT)(self._second_factor)

    def __call__(self, block: Indices) -> Scores:
        """Logarithms of probabilities, or of lifts, ``(b, n)``."""
        found = np.zeros((block.size, self.n), np.float32)
        for row, slice_ in zip(found, block, strict=True):
            a, b = (int(i) for i in self.before[slice_])
            if b != NOTHING:
                self._fill(row, a, b)
        found[np.arange(block.size), block] = -np.inf
        return found

    def _fill(self, row: NDArray[np.float32], a: int, b: int) -> None:
        first, second = self._first_factor(a, b), self._second(b)
        pairs = first[self.pair_first] + second
        spoken = first[self.first_of]
        spoken[self.long[self.worded]] = pairs[self.pair_of]
        if self.long.any():
            spoken[~self.long[self.worded]] += second[self.pair_of].mean()
        row[self.worded] = spoken
        row[~self.worded] = spoken.mean() if spoken.size else 0.0

    def _first_factor(self, a: int, b: int) -> Floats:
        """For each first word, ln P(v₁ | a b)."""
        model = self.model
        one = model.one[self.first]
        found = one + model.backoff_one[b]
        listed, column, begin, end = self._after(b)
        found[column] = model.two[begin:end][listed]
        if a != NOTHING:
            at, there = model.bigram(np.array([a]), np.array([b]))
            if there[0]:
                found += model.backoff_two[at[0]]
                keys = model.keys_three
                low, high = np.searchsorted(keys, (at[0] * model.size, (at[0] + 1) * model.size))
                column = self.column[keys[low:high] % model.size]
                found[column[column >= 0]] = model.three[low:high][column >= 0]
        return np.asarray(found - one if self.lift else found)

    def _second_factor(self, b: int) -> Floats:
        """For each pair of first words, ln P(v₂ | b v₁)."""
        model = self.model
        weight = np.zeros(self.first.size)
        listed, column, begin, end = self._after(b)
        weight[column] = model.backoff_two[begin:end][listed]
        found = self.shared + weight[self.pair_first]
        # Bigrams (b, ·) stand in a row, and so do all trigrams that begin with b.
        keys = model.keys_three
        low, high = np.searchsorted(keys, (begin * model.size, end * model.size))
        context, last = np.divmod(keys[low:high], model.size)
        v1 = self.column[model.keys_two[context] % model.size] if high > low else context
        wanted = v1 * model.size + last
        at = np.minimum(np.searchsorted(self.pair_keys, wanted), max(self.pair_keys.size - 1, 0))
        if self.pair_keys.size:
            there = (v1 >= 0) & (self.pair_keys[at] == wanted)
            found[at[there]] = model.three[low:high][there]
        return np.asarray(found - self.shared if self.lift else found)

    def _after(self, b: int) -> tuple[NDArray[np.bool_], Indices, int, int]:
        """Bigrams (b, ·): which of them lead to a first word, to which, and where they stand."""
        model = self.model
        begin, end = np.searchsorted(model.keys_two, (b * model.size, (b + 1) * model.size))
        column = self.column[model.keys_two[begin:end] % model.size]
        listed = column >= 0
        return listed, column[listed], int(begin), int(end)


def normalised(words: Sequence[str]) -> list[str]:
    """Words as language models spell them: small letters, no punctuation around them."""
    return words_of(" ".join(words))


def unknown_share(texts: Sequence[Sequence[str]], model: NGram) -> float:
    """Share of the words that the model does not know; near 1 for another language."""
    words = [word for text in texts for word in normalised(text)]
    return sum(word not in model.words for word in words) / max(len(words), 1)


def _edge(ids: Indices) -> tuple[int, int]:
    """The first two of up to two places, -1 where there is none."""
    padded = [*(int(i) for i in ids), NOTHING, NOTHING]
    return padded[0], padded[1]
