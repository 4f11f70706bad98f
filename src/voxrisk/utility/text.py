"""One form for reference and recognised words, so that only real errors are counted.

Corpora write ``MISTER BROWN PAID TWENTY FIVE DOLLARS``, recognisers ``Mr. Brown paid $25.``: the
same words. Both sides go through :func:`normalise`; what it merges is listed in its docstring.
"""

import re
import unicodedata
from collections.abc import Callable

# fmt: off
UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
TITLES = {
    "mr": "mister",
    "mrs": "missus",
    "missis": "missus",
    "ms": "miss",
    "dr": "doctor",
    "st": "saint",
    "prof": "professor",
    "capt": "captain",
    "col": "colonel",
    "gen": "general",
    "lt": "lieutenant",
    "sgt": "sergeant",
    "esq": "esquire",
    "jr": "junior",
    "sr": "senior",
    "vs": "versus",
    "etc": "et cetera",
    "okay": "ok",
}
CONTRACTIONS = {
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "shan't": "shall not",
    "ain't": "is not",
    "let's": "let us",
}
ENDINGS = {
    "n't": " not",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "'m": " am",
    "'d": " would",
}
SIGNS = {"$": "dollars", "£": "pounds", "€": "euros", "%": "percent"}

_MONEY = re.compile(
    r"([$£€])\s?(\d+(?:,\d{3})*(?:\.\d+)?)(\s(?:hundred|thousand|million|billion)\b)?"
)
_NUMBER = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?(st|nd|rd|th|s)?(?!\w)")


def normalise(text: str, *, language: str = "en") -> str:
    """Words in lower case, one space between them.

    For every language: Unicode compatibility forms, case, punctuation and hyphens (two words).
    For English besides: numbers in digits become words (1100 to 1999 as years are read), ``and``
    inside a number goes, ``$ £ € % &`` become words, titles are written out, contractions are
    opened (``'d`` to ``would``; ``'s`` stays, for it is mostly a genitive). British and American
    spellings stay different.

    >>> normalise("Mr. O'Brien won't pay $1,250 -- he's LATE!")
    "mister o'brien will not pay one thousand two hundred fifty dollars he's late"
    >>> normalise("In 1862, one hundred and five well-known men; the 21st.")
    'in eighteen sixty two one hundred five well known men the twenty first'
    """
    words = said(text, language=language)
    if not language.lower().startswith("en"):
        return words
    return " ".join(_without_and(" ".join(map(_english, words.split())).split()))


def said(text: str, *, language: str = "en") -> str:
    """The words as a reader says them: as :func:`normalise`, but contractions stay closed.

    It is what a recogniser learns to spell.

    >>> said("Mr. O'Brien won't pay $1,250 -- he's LATE!")
    "mister o'brien won't pay one thousand two hundred fifty dollars he's late"
    """
    text = unicodedata.normalize("NFKC", text).lower()
    text = re.sub("[’‘ʼ`´]", "'", text)
    if not language.lower().startswith("en"):
        return " ".join(_words(text))
    text = _MONEY.sub(_money, text)
    text = _NUMBER.sub(_spoken, text).replace("%", " percent ").replace("&", " and ")
    return " ".join(_written_out(word) for word in _words(text))


def number_words(number: int) -> str:
    """A whole number below 10^12 as it is said, without ``and``.

    >>> number_words(2_000_017)
    'two million seventeen'
    """
    if number < 20:
        return UNITS[number]
    if number < 100:
        ten, unit = divmod(number, 10)
        return TENS[ten - 2] + (f" {UNITS[unit]}" if unit else "")
    size, name = next(scale for scale in SCALES if number >= scale[0])
    count, rest = divmod(number, size)
    return f"{number_words(count)} {name}" + (f" {number_words(rest)}" if rest else "")


def _words(text: str) -> list[str]:
    """Runs of letters, marks and numbers of any script, with apostrophes inside them."""
    kept = (c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return [word for part in "".join(kept).split() if (word := part.strip("'"))]


def _money(match: re.Match[str]) -> str:
    sign, number, size = match[1], match[2], match[3] or ""
    name = SIGNS[sign].removesuffix("s") if number == "1" and not size else SIGNS[sign]
    return f"{number}{size} {name}"


def _written_out(word: str) -> str:
    if word.isdecimal():  # what is left of numbers such as 1.2.3
        return _NUMBER.sub(_spoken, word)
    return TITLES.get(word, word)


def _english(word: str) -> str:
    if word in CONTRACTIONS:
        return CONTRACTIONS[word]
    for ending, full in ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return _english(word.removesuffix(ending)) + full
    return _written_out(word)


def _without_and(words: list[str]) -> list[str]:
    """``one hundred and five`` and ``one hundred five`` are the same number."""
    large = {name for _, name in SCALES}
    return [
        word
        for i, word in enumerate(words)
        if not (
            word == "and"
            and 0 < i < len(words) - 1
            and words[i - 1] in large
            and words[i + 1] in NUMBER_WORDS
        )
    ]


def _spoken(match: re.Match[str]) -> str:
    digits, decimals, ending = match[1], match[2], match[3]
    number = int(digits.replace(",", ""))
    if number >= 10**12 or (len(digits) > 1 and digits.startswith("0")):
        return " ".join(UNITS[int(d)] for d in digits if d != ",")
    year = 1100 <= number <= 1999 and "," not in digits and decimals is None
    words = _year(number) if year else number_words(number)
    if decimals is not None:
        words += " point " + " ".join(UNITS[int(d)] for d in decimals)
    if ending == "s":
        return _last(words, _plural)
    return _last(words, _ordinal) if ending else words


def _year(number: int) -> str:
    century, rest = divmod(number, 100)
    if rest == 0:
        return f"{number_words(century)} hundred"
    return number_words(century) + (" o " if rest < 10 else " ") + number_words(rest)


def _last(words: str, change: Callable[[str], str]) -> str:
    head, _, last = words.rpartition(" ")
    return f"{head} {change(last)}".strip()


def _ordinal(word: str) -> str:
    return ORDINALS.get(word) or (word[:-1] + "ieth" if word.endswith("y") else word + "th")


def _plural(word: str) -> str:
    return word[:-1] + "ies" if word.endswith("y") else word + ("es" if word == "six" else "s")


_CARDINALS = (*UNITS, *TENS, *(name for _, name in SCALES))
NUMBER_WORDS = frozenset([*_CARDINALS, *(_ordinal(word) for word in _CARDINALS)])
