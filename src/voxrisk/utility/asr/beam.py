"""From the probabilities of characters to words: prefix beam search with a language model.

A CTC network says for every frame how likely each character is, or none (blank). Many paths spell
the same text. The search keeps the likeliest texts so far, each with the sum over its paths, and
looks for

    argmax over texts of  ln P_ctc(text) + weight · Σ ln P_lm(word | words before) + bonus · words

To the language model all unknown words are one. Which one it is has a probability too: each of its
letters is as likely as any other.

A. Hannun et al., "First-pass large vocabulary continuous speech recognition using bi-directional
recurrent DNNs", 2014. The search is small enough to be read, and with a wide beam equal to trying
all texts, which a test does.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.language import START, LanguageModel

BLANK = 0  # the place of "no character" in every alphabet
SPACE = " "
NEVER = -math.inf


@dataclass(frozen=True, slots=True)
class Search:
    """How to search.

    Attributes:
        beam: Texts that are kept after each frame.
        floor: Characters less likely than exp(floor) in a frame are not tried there.
        weight: Of the language model's log probabilities.
        bonus: For every word; without it the language model prefers few words.
    """

    beam: int = 16
    floor: float = -7.0
    weight: float = 0.5
    bonus: float = 1.5


@dataclass(slots=True, eq=False)
class _Text:
    """One text: a node of the tree of all texts that were ever kept."""

    parent: "_Text | None"
    token: int
    word: str  # the unfinished word at its end
    context: tuple[str, ...]  # the last finished words
    merit: float  # of its finished words, by the language model and the bonus
    hope: float = 0.0  # of the unfinished one, at best
    after: dict[int, "_Text"] = field(default_factory=dict)


def best_text(
    log_probs: NDArray[np.float32],
    alphabet: Sequence[str],
    *,
    model: LanguageModel | None = None,
    search: Search | None = None,
) -> str:
    """The best text of one utterance.

    Args:
        log_probs: ``(t, v)`` natural logarithms; column 0 is the blank.
        alphabet: The v characters; the first is never written.
        model: Language model; None: the network alone decides.
        search: How to search.

    >>> probs = np.log([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]])
    >>> best_text(probs.astype(np.float32), ["", "a", "b"])
    'ab'
    """
    search = search or Search()
    judge = _Judge(alphabet, model, search)
    texts: dict[_Text, tuple[float, float]] = {
        _Text(None, BLANK, "", (START,), 0.0): (0.0, NEVER)  # ends in blank, ends in its character
    }
    for frame in log_probs:
        tried = [(int(c), float(frame[c])) for c in np.flatnonzero(frame > search.floor)]
        if not tried:  # nothing is likely: then the likeliest
            tried = [(int(frame.argmax()), float(frame.max()))]
        texts = _step(texts, tried, judge)
        if len(texts) > search.beam:
            order = sorted(texts.items(), key=_standing, reverse=True)
            texts = dict(order[: search.beam])
    best = max(texts.items(), key=lambda item: _ended(item, judge))
    return _spelt(best[0], alphabet)


class _Judge:
    """Makes longer texts, and says what the language model thinks of their words."""

    def __init__(
        self, alphabet: Sequence[str], model: LanguageModel | None, search: Search
    ) -> None:
        self.alphabet, self.search = alphabet, search
        ready: Any = model
        self.words = None if model is None else _known(ready)
        self.spelling = math.log(max(2, len(alphabet) - 2))

    def longer(self, text: _Text, token: int) -> _Text:
        """The text and one more character; always the same object, so that its paths meet."""
        if token not in text.after:
            letter = self.alphabet[token]
            if letter != SPACE:
                made = _Text(text, token, text.word + letter, text.context, text.merit)
                made.hope = self.hope(made.word)
            else:
                context = (*text.context, text.word)[-2:] if text.word else text.context
                made = _Text(text, token, "", context, text.merit + self.last_word(text))
            text.after[token] = made
        return text.after[token]

    def last_word(self, text: _Text) -> float:
        """What the unfinished word is worth, if it ends here."""
        if not text.word or self.words is None:
            return 0.0
        log_prob = self.words.log_prob(text.word, text.context)
        if text.word not in self.words.known:
            log_prob -= self.spelling * len(text.word)
        return self.search.weight * log_prob + self.search.bonus

    def hope(self, word: str) -> float:
        """What the unfinished word is worth at best, so that a text does not gain by not ending it.

        The likeliest word that begins so; where no known word does, an unknown one.
        """
        if not word or self.words is None:
            return 0.0
        log_prob = self.words.ahead.get(word)
        if log_prob is None:
            log_prob = self.words.unknown - self.spelling * len(word)
        return self.search.weight * log_prob + self.search.bonus


class _Known:
    """The words of a language model, and what it was asked before."""

    def __init__(self, model: LanguageModel) -> None:
        self.known = model.unigrams()
        self.log_prob = functools.lru_cache(maxsize=1 << 20)(model.log_prob)
        self.unknown = model.log_prob("\0", ())
        self.ahead: dict[str, float] = {}
        for word, alone in self.known.items():
            for end in range(1, len(word) + 1):
                if alone > self.ahead.get(word[:end], NEVER):
                    self.ahead[word[:end]] = alone


@functools.lru_cache(maxsize=2)
def _known(model: Any) -> _Known:
    return _Known(model)


def _step(
    texts: dict[_Text, tuple[float, float]], tried: list[tuple[int, float]], judge: _Judge
) -> dict[_Text, tuple[float, float]]:
    """All texts after one more frame: ln P of the paths that end in blank, and of the others."""
    found: dict[_Text, tuple[float, float]] = {}
    for text, (blank, spoken) in texts.items():
        both = _plus(blank, spoken)
        for token, log_prob in tried:
            if token == BLANK:
                before = found.get(text, (NEVER, NEVER))
                found[text] = _plus(before[0], both + log_prob), before[1]
                continue
            if token == text.token:  # the same character again is still the same one,
                before = found.get(text, (NEVER, NEVER))
                found[text] = before[0], _plus(before[1], spoken + log_prob)
                come_from = blank  # and a new one only after a blank
            else:
                come_from = both
            if come_from > NEVER:
                made = judge.longer(text, token)
                before = found.get(made, (NEVER, NEVER))
                found[made] = before[0], _plus(before[1], come_from + log_prob)
    return found


def _plus(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a if b == NEVER else a + math.log1p(math.exp(b - a))


def _standing(item: tuple[_Text, tuple[float, float]]) -> float:
    return _plus(*item[1]) + item[0].merit + item[0].hope


def _ended(item: tuple[_Text, tuple[float, float]], judge: _Judge) -> float:
    return _plus(*item[1]) + item[0].merit + judge.last_word(item[0])


def _spelt(text: _Text, alphabet: Sequence[str]) -> str:
    letters = []
    while text.parent is not None:
        letters.append(alphabet[text.token])
        text = text.parent
    return "".join(reversed(letters)).strip()
