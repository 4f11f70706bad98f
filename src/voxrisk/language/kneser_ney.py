"""A trigram model from text: interpolated modified Kneser-Ney smoothing.

References: Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling",
Computer Speech & Language 13 (1999); Heafield et al., "Scalable Modified Kneser-Ney Language Model
Estimation", ACL 2013, whose tool lmplz gives the same probabilities (the tests hold a model of it).

For an n-gram ``h w`` with count a, and the discounts D(1), D(2), D(3+) of its order::

    P(w | h) = (a(h w) - D(a(h w))) / Σ_x a(h x) + γ(h) · P(w | h without its first word)
    γ(h)     = Σ_i D(i) · |{x : a(h x) = i}| / Σ_x a(h x)
    D(k)     = k - (k + 1) · t₁/(t₁ + 2·t₂) · t_{k+1}/t_k,  t_k = n-grams with count k

Counts of trigrams are how often they occur; those of shorter n-grams how many different words stand
before them, or how often they occur where nothing can stand before ``<s>``. Below the unigrams lies
the uniform distribution over all words, ``</s>`` and ``<unk>``.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.ngrams import LN10, NEVER, NgramTable
from voxrisk.language.model import START
from voxrisk.language.ngram import END, UNKNOWN
from voxrisk.types import InputError

FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small to tell them, as lmplz takes them
UNK, BEGIN, STOP = 0, 1, 2  # places of <unk>, <s>, </s> in the vocabulary
MOST_WORDS = 1 << 21  # three places must fit into one whole number

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The n-grams of one order, sorted: ``grams (k, m)``, their counts and their probabilities."""

    grams: Ids
    count: Ids
    value: Floats  # P(last | others)
    context: Ids  # (k,) which context each belongs to
    keys: Ids  # (c,) the contexts, packed
    gamma: Floats  # (c,) what each context leaves to the lower order


def estimate(sentences: Iterable[Sequence[str]]) -> NgramTable:
    """A trigram model of the sentences, each a sequence of words.

    Raises:
        InputError: If there is no word, or a word is one of ``<s>``, ``</s>``, ``<unk>``.

    >>> from voxrisk.language.ngram import NGram
    >>> model = NGram(estimate([["to", "be"], ["not", "to", "be"]]))
    >>> model.log_prob("be", ["to"]) > model.log_prob("not", ["to"])
    True
    """
    words, stream = _numbered(sentences)
    if len(words) >= MOST_WORDS:
        raise InputError(f"{len(words):,} different words; at most {MOST_WORDS:,} can be counted")
    size = len(words)
    grams, counts = _counts(stream, size)
    uniform = np.full(size, 1.0 / (size - 1))  # everything but <s> can come
    orders: list[_Order] = []
    for m in range(3):
        lower = uniform if not orders else orders[-1]
        orders.append(_smoothed(grams[m], counts[m], size, lower))
    return _table(words, orders, size)


def _numbered(sentences: Iterable[Sequence[str]]) -> tuple[list[str], Ids]:
    """The vocabulary, and the text as one array with <s> and </s> around every sentence."""
    places = {UNKNOWN: UNK, START: BEGIN, END: STOP}
    stream: list[int] = []
    for sentence in sentences:
        if marks := {UNKNOWN, START, END} & set(sentence):
            raise InputError(f"a sentence holds {sorted(marks)[0]!r}, which is no word of a text")
        if not sentence:
            continue
        stream.append(BEGIN)
        stream.extend(places.setdefault(word, len(places)) for word in sentence)
        stream.append(STOP)
    if not stream:
        raise InputError("there is no word to estimate a language model from")
    return list(places), np.array(stream, np.int64)


def _counts(stream: Ids, size: int) -> tuple[list[Ids], list[Ids]]:
    """The n-grams of each order, sorted, and their adjusted counts."""
    a, b, c = stream[:-2], stream[1:-1], stream[2:]
    inside = (b != STOP) & (c != BEGIN) & (b != BEGIN)
    packed, raw = np.unique(((a * size + b) * size + c)[inside], return_counts=True)
    three = _unpacked(packed, size, 3)
    b, c = stream[:-1], stream[1:]
    starts, how_often = np.unique((b * size + c)[b == BEGIN], return_counts=True)
    # A bigram that does not begin with <s> counts for each word that stood before it.
    seen, before = np.unique(packed % (size * size), return_counts=True)
    keys = np.concatenate([starts, seen])
    order = np.argsort(keys)
    two = _unpacked(keys[order], size, 2)
    count_two = np.concatenate([how_often, before])[order]
    one = np.arange(size, dtype=np.int64)
    count_one = np.bincount(two[:, 1], minlength=size)
    return [one[:, None], two, three], [count_one, count_two, raw.astype(np.int64)]


def _unpacked(keys: Ids, size: int, order: int) -> Ids:
    parts = [keys // size**k % size for k in range(order - 1, -1, -1)]
    return np.stack(parts, axis=1)


def _packed(grams: Ids, size: int) -> Ids:
    """``(k,)`` one whole number for each n-gram ``(k, m)``, in the order of the n-grams."""
    keys = np.zeros(len(grams), np.int64)
    for column in range(grams.shape[1]):
        keys = keys * size + grams[:, column]
    return keys


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, 10.0**NEVER)))


def _discounts(count: Ids) -> Floats:
    """``(4,)`` what is taken off counts of 0, 1, 2, and 3 or more."""
    t = [int((count == k).sum()) for k in range(5)]
    if not all(t[1:4]):
        return np.array([0.0, *FALLBACK])
    found = [k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[k + 1] / t[k] for k in (1, 2, 3)]
    if any(not 0.0 <= d <= k for k, d in enumerate(found, start=1)):
        return np.array([0.0, *FALLBACK])
    return np.array([0.0, *found])


def _smoothed(grams: Ids, count: Ids, size: int, lower: "_Order | Floats") -> _Order:
    order = grams.shape[1]
    told = count if order > 1 else np.delete(count, [UNK, BEGIN])
    off = _discounts(told)[np.minimum(count, 3)]
    keys, context = np.unique(_packed(grams[:, :-1], size), return_inverse=True)
    total = np.bincount(context, count)
    gamma = np.bincount(context, off) / total
    below = lower[grams[:, -1]] if isinstance(lower, np.ndarray) else _asked(lower, grams, size)
    value = (count - off) / total[context] + gamma[context] * below
    return _Order(grams, count, value, context, keys, gamma)


def _asked(lower: _Order, grams: Ids, size: int) -> Floats:
    """P(last | the words before it but the first), which the lower order always lists."""
    wanted = _packed(grams[:, 1:], size)
    return np.asarray(lower.value[np.searchsorted(_packed(lower.grams, size), wanted)])


def _table(words: Sequence[str], orders: Sequence[_Order], size: int) -> NgramTable:
    backoff = []
    for order, above in itertools.pairwise(orders):
        packed = _packed(order.grams, size)
        at = np.minimum(np.searchsorted(above.keys, packed), above.keys.size - 1)
        # An n-gram that nothing follows (all that end with </s>) leaves all to the lower order.
        backoff.append(np.where(above.keys[at] == packed, _log(above.gamma[at]), 0.0))
    backoff.append(np.zeros(len(orders[-1].grams)))
    values = [_log(order.value) for order in orders]
    values[0][BEGIN] = NEVER * LN10
    return NgramTable(
        tuple(words), tuple(o.grams.astype(np.int32) for o in orders), tuple(values), tuple(backoff)
    )
