"""Who speaks, from the words alone: what a transcript gives away whatever the voice sounds like.

Anonymization changes the voice and leaves the words. An attacker who reads transcripts needs no
recogniser of voices: people have topics, names and turns of phrase of their own. So no anonymizer
of voices can protect better than this attacker leaves room for, and only what a voice attacker
finds beyond it comes from the voice.

The weighting is TF-IDF (Spärck Jones 1972; Salton and Buckley 1988, with a smoothed inverse
document frequency). A document is all that one enrolment says. For a word that occurs ``f`` times
in a text and in ``n_w`` of the ``N`` enrolled documents::

    weight = f · (1 + ln((1 + N) / (1 + n_w)))

Vectors have length one, and the score is their cosine: 0 where no word is shared, 1 for the same
words equally often. Words that no enrolment says are left out of a trial. The document frequencies
come from the enrolled texts only: the attacker does not look at the trials as a whole.
"""

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from voxrisk.attack.scoring import Scored
from voxrisk.corpus.table import Utterance
from voxrisk.corpus.trials import Trial
from voxrisk.types import InputError

HASHED = 256
WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_of(text: str) -> list[str]:
    """The words of a text, folded to one case; an apostrophe inside a word belongs to it.

    >>> words_of("Don't stop, SIR")
    ["don't", 'stop', 'sir']
    """
    return WORD.findall(text.casefold().replace("’", "'"))


def word_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """Texts as vectors ``(n, 256)``: each word counts in one place, with a sign; log of how often.

    Place and sign come from a hash of the word (Weinberger et al., ICML 2009), so that no list of
    words must be known. The last value is always 1, for a text without a word.
    """
    found = np.zeros((len(texts), HASHED))
    for row, text in zip(found, texts, strict=True):
        for word, count in Counter(words_of(text)).items():
            number = zlib.crc32(word.encode())
            row[number % (HASHED - 1)] += (1.0 if number >> 31 else -1.0) * np.log1p(count)
        row[-1] = 1.0
    return found.astype(np.float32)


def score_words(
    enroll_rows: Sequence[Utterance],
    trial_rows: Sequence[Utterance],
    trials: Sequence[Trial],
    *,
    enrolments: Mapping[str, Sequence[str]] | None = None,
) -> Scored:
    """Score every trial by the words that enrolment and trial share.

    Args:
        enroll_rows: Utterances that enrol, with their ``text``.
        trial_rows: Utterances that are tried, with their ``text``.
        trials: What is compared.
        enrolments: Enrolment → utterances; by default a speaker → all their ``enroll_rows``.

    Returns:
        Cosines between 0 and 1 in the order of ``trials``. A trial text that shares no word with
        anyone gets 0 everywhere: it says nothing.

    Raises:
        InputError: If a text is missing or holds no words, or the lists name what is not there.
    """
    if not trials:
        raise InputError("the trial list is empty: there is nothing to score")
    spoken = {row.utterance: row for row in enroll_rows}
    if enrolments is None:
        own: dict[str, list[str]] = {}
        for row in enroll_rows:
            own.setdefault(row.speaker, []).append(row.utterance)
        enrolments = own
    used = list(dict.fromkeys(trial.enroll for trial in trials))
    counts = [_enrolled(name, enrolments, spoken) for name in used]
    heard = {row.utterance: row for row in trial_rows}
    tried = list(dict.fromkeys(trial.trial for trial in trials))
    if missing := [name for name in tried if name not in heard]:
        raise InputError(
            f"trial utterance {missing[0]} is not in the corpus ({len(missing)} such); give the "
            "corpus the trial list was made for"
        )
    place = {word: i for i, word in enumerate(sorted({w for c in counts for w in c}))}
    documents = _table(counts, place)
    frequency = np.bincount(documents.indices, minlength=len(place))
    idf = 1.0 + np.log((1.0 + len(used)) / (1.0 + frequency))
    left = _weighted(documents, idf)
    right = _weighted(_table([Counter(_words(heard[name])) for name in tried], place), idf)
    row_of = {name: i for i, name in enumerate(used)}
    column_of = {name: i for i, name in enumerate(tried)}
    rows = np.array([row_of[trial.enroll] for trial in trials])
    columns = np.array([column_of[trial.trial] for trial in trials])
    return Scored(
        tuple(trial.enroll for trial in trials),
        tuple(trial.trial for trial in trials),
        np.array([trial.target for trial in trials]),
        np.asarray((left @ right.T).toarray()[rows, columns], np.float64),
    )


def _enrolled(
    name: str, enrolments: Mapping[str, Sequence[str]], spoken: Mapping[str, Utterance]
) -> Counter[str]:
    """The words of all texts of one enrolment together."""
    utterances = enrolments.get(name, ())
    missing = [u for u in utterances if u not in spoken]
    if missing or not utterances:
        what = f"utterance {missing[0]} is not in the corpus" if missing else "no utterance"
        raise InputError(f"enrolment {name}: {what}; add it, or leave the enrolment out")
    return Counter(word for u in utterances for word in _words(spoken[u]))


def _words(row: Utterance) -> list[str]:
    found = words_of(row.text or "")
    if not found:
        raise InputError(
            f"utterance {row.utterance} has no text; the attacker who reads needs transcripts: "
            "fill the column text, or leave this attacker out"
        )
    return found


def _table(counts: Sequence[Counter[str]], place: Mapping[str, int]) -> sparse.csr_array:
    """How often each known word occurs, ``(texts, words)``."""
    cells = [
        (i, place[word], float(f))
        for i, text in enumerate(counts)
        for word, f in text.items()
        if word in place
    ]
    rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    shape = (len(counts), len(place))
    index = (np.array(rows, np.int64), np.array(columns, np.int64))
    return sparse.csr_array((np.array(values, np.float64), index), shape=shape)


def _weighted(table: sparse.csr_array, idf: np.ndarray) -> sparse.csr_array:
    """TF-IDF of length one; a text without a known word stays zero: it is like no other."""
    weighted = table.multiply(idf[None, :]).tocsr()
    length = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return sparse.csr_array(weighted.multiply(inverse[:, None]))
