"""A trigram model with back-off, asked for many probabilities at once.

Katz's form, which ARPA files have whatever their smoothing is::

    P(c | a b) = p(a b c)            where the trigram is listed
               = bow(a b) · P(c | b)  otherwise (bow = 1 where the bigram is not listed)

**Unknown words.** A model with ``<unk>`` gives its probability to every word it does not know. To
one without (pocketsphinx's), ``<unk>`` is added with the probability of its least likely word. Two
unknown words are the same word to the model.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.ngrams import NgramTable, read_arpa
from voxrisk.files.sphinx import read_sphinx
from voxrisk.language.model import START
from voxrisk.types import require

UNKNOWN = "<unk>"
END = "</s>"
NOTHING = -1  # in the place of a word: nothing is known there

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class NGram:
    """A trigram model (or a bigram or unigram one).

    Attributes:
        identity: Hash of all that it says.
        words: Word → place.
        one: ``(V,)`` ln P(word).
        backoff_one: ``(V,)`` ln of the back-off weight of a word.
        keys_two: ``(k,)`` sorted ``a·V + b`` of the bigrams.
        two: ``(k,)`` ln P(b | a).
        backoff_two: ``(k,)``.
        keys_three: ``(k,)`` sorted ``bigram·V + c``, the bigram by its place.
        three: ``(k,)`` ln P(c | a b).
    """

    def __init__(self, table: NgramTable) -> None:
        self.identity = _identity(table)
        words, one, backoff = _opened(table)
        self.words = {word: i for i, word in enumerate(words)}
        self.one, self.backoff_one = one, backoff
        size = len(words)
        grams, values, weights = _with_contexts(table, self._lower)
        keys = grams[:, 0] * size + grams[:, 1]
        order = np.argsort(keys, kind="stable")
        self.keys_two, self.two, self.backoff_two = keys[order], values[order], weights[order]
        if len(table.grams) > 2:
            triples = table.grams[2].astype(np.int64)
            context, _ = self.bigram(triples[:, 0], triples[:, 1])
            keys = context * size + triples[:, 2]
            order = np.argsort(keys, kind="stable")
            self.keys_three, self.three = keys[order], table.log_prob[2][order]
        else:
            self.keys_three, self.three = np.zeros(0, np.int64), np.zeros(0)

    @property
    def size(self) -> int:
        """Words that the model knows, ``<unk>`` and the marks of a sentence included."""
        return len(self.words)

    def ids(self, words: Iterable[str]) -> Ids:
        """The places ``(n,)`` of words; that of ``<unk>`` for those it does not know."""
        unknown = self.words[UNKNOWN]
        return np.array([self.words.get(word, unknown) for word in words], np.int64)

    def bigram(self, a: Ids, b: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Where the bigrams stand in the table, and whether they do."""
        return _find(self.keys_two, a * self.size + b)

    def log_probs(self, a: Ids, b: Ids, c: Ids) -> Floats:
        """Logarithms of P(c | a b), arrays of one shape; -1 for a, or both, if nothing is known."""
        at, listed = self.bigram(np.maximum(a, 0), np.maximum(b, 0))
        listed &= (a >= 0) & (b >= 0)
        found = self._after_one(b, c) + np.where(listed, _take(self.backoff_two, at), 0.0)
        triple, there = _find(self.keys_three, at * self.size + c)
        return np.where(there & listed, _take(self.three, triple), found)

    def _after_one(self, b: Ids, c: Ids) -> Floats:
        """Logarithms of P(c | b)."""
        known = np.maximum(b, 0)
        at, listed = self.bigram(known, c)
        lower = self.one[c] + np.where(b >= 0, self.backoff_one[known], 0.0)
        return np.where(listed & (b >= 0), _take(self.two, at), lower)

    def _lower(self, b: Ids, c: Ids) -> Floats:
        return np.asarray(self.one[c] + self.backoff_one[b])

    def unigrams(self) -> dict[str, float]:
        """Every word and its ln P, see :class:`voxrisk.language.LanguageModel`."""
        return dict(zip(self.words, self.one.tolist(), strict=True))

    def log_prob(self, word: str, context: Sequence[str]) -> float:
        """Natural logarithm of P(word | context), see :class:`voxrisk.language.LanguageModel`."""
        before = [NOTHING, NOTHING, *self.ids(context[-2:]).tolist()][-2:]
        a, b, c = (np.array([i], np.int64) for i in (*before, int(self.ids([word])[0])))
        return float(self.log_probs(a, b, c)[0])

    def perplexity(self, sentences: Iterable[Sequence[str]]) -> float:
        """How many words the model hesitates between on average; lower is better.

        exp of the mean of -ln P over all words and the end of each sentence, unknown ones included.
        """
        total, count = 0.0, 0
        for sentence in sentences:
            ids = self.ids((START, *sentence, END))
            a = np.concatenate([[NOTHING], ids[:-2]])
            total += float(self.log_probs(a, ids[:-1], ids[1:]).sum())
            count += ids.size - 1
        return float(np.exp(-total / max(count, 1)))


def load_arpa(path: Path | str) -> NGram:
    """The model of an ARPA file."""
    return NGram(read_arpa(Path(path)))


@functools.cache
def embedded_model() -> NGram:
    """The English trigram model of pocketsphinx: 72,547 words, nothing to download."""
    pocketsphinx = require("pocketsphinx", extra="align")
    return NGram(read_sphinx(Path(pocketsphinx.get_model_path("en-us")) / "en-us.lm.bin"))


def _opened(table: NgramTable) -> tuple[tuple[str, ...], Floats, Floats]:
    """Vocabulary, unigrams and their weights, with ``<unk>`` added where it is missing."""
    place = table.grams[0][:, 0]
    one = np.full(len(table.words), -np.inf)
    one[place] = table.log_prob[0]
    backoff = np.zeros(len(table.words))
    backoff[place] = table.backoff[0]
    for other in ("<UNK>", "<unk>"):
        if other in table.words:
            words = tuple(UNKNOWN if word == other else word for word in table.words)
            return words, one, backoff
    sure = [w not in (START, END) for w in table.words]
    least = float(one[sure].min()) if any(sure) else float(one.min())
    one = np.append(one, least) - np.log1p(np.exp(least))
    return (*table.words, UNKNOWN), one, np.append(backoff, 0.0)


def _with_contexts(
    table: NgramTable, lower: Callable[[Ids, Ids], Floats]
) -> tuple[Ids, Floats, Floats]:
    """The bigrams, and those that only trigrams begin with, at their backed-off probability."""
    if len(table.grams) < 2:
        return np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0)
    grams = table.grams[1].astype(np.int64)
    values, weights = table.log_prob[1], table.backoff[1]
    if len(table.grams) < 3 or not len(table.grams[2]):
        return grams, values, weights
    size = len(table.words) + 1
    used = np.unique(table.grams[2][:, 0].astype(np.int64) * size + table.grams[2][:, 1])
    missing = np.setdiff1d(used, grams[:, 0] * size + grams[:, 1], assume_unique=True)
    if missing.size:
        more = np.stack([missing // size, missing % size], axis=1)
        grams = np.concatenate([grams, more])
        values = np.concatenate([values, lower(more[:, 0], more[:, 1])])
        weights = np.concatenate([weights, np.zeros(missing.size)])
    return grams, values, weights


def _find(keys: Ids, wanted: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    at = np.searchsorted(keys, wanted)
    if not keys.size:
        return at, np.zeros(at.shape, np.bool_)
    at = np.minimum(at, keys.size - 1)
    return at, keys[at] == wanted


def _take(values: Floats, at: Ids) -> Floats:
    return values[at] if values.size else np.zeros(at.shape)


def _identity(table: NgramTable) -> str:
    mark = hashlib.blake2b("\0".join(table.words).encode("utf-8", "surrogatepass"), digest_size=16)
    for part in (*table.grams, *table.log_prob, *table.backoff):
        mark.update(np.ascontiguousarray(part).tobytes())
    return mark.hexdigest()
