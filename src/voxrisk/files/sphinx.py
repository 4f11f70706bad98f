"""The binary language models of CMU Sphinx ("Trie Language Model"), as pocketsphinx ships one.

After a heading the file holds tables of quantised logarithms, then the unigrams, then bigrams and
trigrams as arrays of bits, then the words. The trie is read from the predicted word backwards: a
bigram (a, b) is a child a of the unigram b, a trigram (a, b, c) a child a of the bigram (b, c).
Logarithms are to the base 1.0001. pocketsphinx itself can answer one question at a time only, which
is too slow for pairs by the million, so the arrays are opened here.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxrisk.files.errors import reading
from voxrisk.files.ngrams import NgramTable
from voxrisk.types import InputError

BROKEN = "is damaged or not whole; install pocketsphinx again"
HEAD = b"Trie Language Model"
BINS = 1 << 16  # of each table of logarithms
QUANT_BITS = 16
LOG_BASE = float(np.log(1.0001))
NEVER = -99.0 * float(np.log(10.0))
UNIGRAM = np.dtype([("log_prob", "<f4"), ("backoff", "<f4"), ("children", "<u4")])


def read_sphinx(path: Path) -> NgramTable:
    """A trigram model in the binary form of CMU Sphinx.

    Raises:
        InputError: If it is of another kind, of another order, or not whole.
    """
    with reading(path, "a Sphinx language model"):
        data = path.read_bytes()
        if not data.startswith(HEAD) or data[len(HEAD)] != 3:
            raise InputError(f"{path}: is no binary trigram model of CMU Sphinx")
        at = len(HEAD) + 1
        words, bigrams, trigrams = (int(n) for n in np.frombuffer(data, "<u4", 3, at))
        at += 12 + 4  # the counts, and the kind of quantisation
        tables = np.frombuffer(data, "<f4", 3 * BINS, at).reshape(3, BINS).astype(np.float64)
        tables = np.maximum(tables * LOG_BASE, NEVER)
        at += 3 * BINS * 4
        roots = np.frombuffer(data, UNIGRAM, words + 1, at)
        own = np.stack([roots[k][:-1] for k in ("log_prob", "backoff")]).astype(np.float64)
        own = np.maximum(own * LOG_BASE, NEVER)
        at += roots.nbytes
        word_bits, pointer_bits = words.bit_length(), trigrams.bit_length()
        fields = (word_bits, QUANT_BITS, QUANT_BITS, pointer_bits)
        two, size = _entries(data, at, bigrams + 1, fields)
        at += size
        three, size = _entries(data, at, trigrams + 1, (word_bits, QUANT_BITS))
        at += size
        spelt = data[at + 4 :].decode().split("\0")[:words]
        # Children lie one after the other; how many there are is told by the next pointer. The
        # counts of the heading are room only: a few n-grams fewer may be there.
        starts = _pointers(path, roots["children"].astype(np.int64), bigrams)
        bigrams = int(starts[-1])
        second = np.repeat(np.arange(words), np.diff(starts))
        pairs = np.stack([two[0][:bigrams], second], axis=1)
        starts = _pointers(path, two[3][: bigrams + 1], trigrams)
        trigrams = int(starts[-1])
        parent = np.repeat(np.arange(bigrams), np.diff(starts))
        triples = np.concatenate([three[0][:trigrams, None], pairs[parent]], axis=1)
        outside = max(int(grams.max(initial=0)) for grams in (pairs, triples)) >= words
        logs_fit = np.isfinite(tables).all() and (tables[0] <= 0.0).all()
        if outside or not logs_fit or len(set(spelt)) < words or not np.isfinite(own).all():
            raise InputError(f"{path}: {BROKEN}")
    return NgramTable(
        tuple(spelt),
        (
            np.arange(words, dtype=np.int32)[:, None],
            pairs.astype(np.int32),
            triples.astype(np.int32),
        ),
        (own[0], tables[0][two[2][:bigrams]], tables[2][three[1][:trigrams]]),
        (own[1], tables[1][two[1][:bigrams]], np.zeros(trigrams)),
    )


def _pointers(path: Path, starts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Where the children of each entry begin; believed only if they stay inside the file."""
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > most:
        raise InputError(f"{path}: {BROKEN}")
    return starts


def _entries(
    data: bytes, at: int, count: int, fields: tuple[int, ...]
) -> tuple[list[NDArray[np.int64]], int]:
    """Fields of so many bits each from an array of bits, lowest bit first; its size in bytes."""
    width = sum(fields)
    size = (count * width + 7) // 8 + 8
    raw = np.frombuffer(data, np.uint8, size, at)
    found, shift = [], 0
    for bits in fields:
        place = np.arange(count, dtype=np.int64) * width + shift
        first = place >> 3
        value = np.zeros(count, np.int64)
        for byte in range((bits + 7 + 7) // 8):
            value |= raw[first + byte].astype(np.int64) << (8 * byte)
        found.append((value >> (place & 7)) & ((1 << bits) - 1))
        shift += bits
    return found, size
