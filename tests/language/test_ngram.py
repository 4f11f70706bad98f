"""Trigram models: probabilities that add up, files read back, the model of pocketsphinx."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxrisk.files.ngrams import NgramTable, read_arpa, write_arpa
from voxrisk.language.kneser_ney import estimate
from voxrisk.language.ngram import START, UNKNOWN, NGram, embedded_model, load_arpa
from voxrisk.types import InputError

TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=9), min_size=1)


def sums(model: NGram, contexts: list[tuple[str, ...]]) -> list[float]:
    """Σ P(word | context) over all that can come: every word, </s> and <unk>, not <s>."""
    every = np.array([i for word, i in model.words.items() if word != START])
    found = []
    for context in contexts:
        a, b = [-1, -1, *model.ids(context).tolist()][-2:]
        p = model.log_probs(np.full(every.size, a), np.full(every.size, b), every)
        found.append(float(np.exp(p).sum()))
    return found


@settings(deadline=None)
@given(TEXTS)
def test_probabilities_of_an_estimated_model_add_up_to_one_in_every_context(
    text: list[list[str]],
) -> None:
    model = NGram(estimate(text))
    alphabet = [*"abcdefg", UNKNOWN]  # contexts that were seen and such that were not
    contexts: list[tuple[str, ...]] = [(), (START,), *((a,) for a in alphabet)]
    contexts += [*itertools.product(alphabet, alphabet), *((START, a) for a in alphabet)]
    assert sums(model, contexts) == pytest.approx(np.ones(len(contexts)), abs=1e-9)


def test_probabilities_of_pocketsphinx_add_up_to_one() -> None:
    model = embedded_model()
    contexts: list[tuple[str, ...]] = [
        (), (START,), ("of",), ("one", "of"), ("unheardof", "the"), ("the", "unheardof"),
    ]  # fmt: skip
    # Its logarithms are rounded to four digits and put into 65,536 bins.
    assert sums(model, contexts) == pytest.approx(np.ones(6), abs=1e-3)


def test_the_reader_of_its_file_agrees_with_pocketsphinx_itself() -> None:
    pocketsphinx = pytest.importorskip("pocketsphinx")
    math = pocketsphinx.LogMath()
    file = f"{pocketsphinx.get_model_path('en-us')}/en-us.lm.bin"
    theirs = pocketsphinx.NGramModel(pocketsphinx.Config(), math, file)
    model = embedded_model()
    words = ("of", "the", "one", "in", "to", "be", "king", "house", "said", "alice", "zyman")
    for a, b, c in itertools.product(words, words, words):
        # pocketsphinx takes the predicted word first, and the history backwards.
        assert model.log_prob(c, (a, b)) == pytest.approx(
            theirs.prob([c, b, a]) * np.log(1.0001), abs=2e-4
        )


def test_an_unknown_word_of_a_closed_model_is_as_likely_as_its_least_likely_word() -> None:
    model = embedded_model()
    least = min(p for word, p in zip(model.words, model.one, strict=True) if word != START)
    assert model.log_prob("unheardof", ()) == pytest.approx(least)
    assert model.log_prob("unheardof", ("of",)) == model.log_prob("neverheard", ("of",))


def test_perplexity_of_a_uniform_model_is_its_number_of_words() -> None:
    words = ("<s>", "</s>", "<unk>", "a", "b")
    one = np.log(np.full(5, 0.25))
    one[0] = -200.0
    table = NgramTable(words, (np.arange(5, dtype=np.int32)[:, None],), (one,), (np.zeros(5),))
    assert NGram(table).perplexity([["a", "b"], ["a", "strange", "b"]]) == pytest.approx(4.0)


def test_an_arpa_file_gives_the_same_model_back(tmp_path: Path) -> None:
    table = estimate([list("abcab"), list("bca"), list("abd"), list("cabca")])
    write_arpa(tmp_path / "model.arpa", table)
    one, two = NGram(table), load_arpa(tmp_path / "model.arpa")
    for a, b, c in itertools.product("abcdx", repeat=3):
        assert two.log_prob(c, (a, b)) == pytest.approx(one.log_prob(c, (a, b)), abs=1e-5)


ARPA = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=1

\\1-grams:
-99\t<s>\t-0.3
-0.5\tthe\t-0.2
-0.6\tcat
-0.7\t</s>

\\2-grams:
-0.1\t<s> the\t-0.05
-0.2\tthe cat

\\3-grams:
-0.01\t<s> the cat

\\end\\
"""


def arpa(tmp_path: Path, text: str) -> Path:
    (tmp_path / "x.arpa").write_text(text, encoding="utf-8")
    return tmp_path / "x.arpa"


def test_an_arpa_file_is_read_by_the_rule_of_back_off(tmp_path: Path) -> None:
    model = load_arpa(arpa(tmp_path, ARPA))
    ten = np.log(10)
    assert model.log_prob("cat", (START, "the")) == pytest.approx(-0.01 * ten)
    assert model.log_prob("cat", ("cat", "the")) == pytest.approx(-0.2 * ten)
    # bow(<s> the) · bow(the) · P(</s>): the file has no <unk>, so the rest gives way a little
    assert model.log_prob("</s>", (START, "the")) == pytest.approx(
        (-0.05 - 0.2 - 0.7) * ten - np.log1p(10**-0.6)
    )


def test_a_trigram_whose_bigram_is_not_listed_is_found(tmp_path: Path) -> None:
    text = ARPA.replace("ngram 2=2", "ngram 2=1").replace("-0.1\t<s> the\t-0.05\n", "")
    model = load_arpa(arpa(tmp_path, text))
    assert model.log_prob("cat", (START, "the")) == pytest.approx(-0.01 * np.log(10))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ngram 2=2", "ngram 3=2", r"line 3: says 'ngram 3=2' where the number of 2-grams"),
        ("-0.6\tcat", "-0.6\tthe", r"line 9: the word 'the' stands there twice"),
        ("-0.2\tthe cat", "-0.2\tthe dog", r"line 14: 'dog' is not among the 1-grams"),
        ("-0.2\tthe cat", "-0.1\t<s> the", r"line 14: the n-gram '<s> the' twice"),
        ("-0.6\tcat", "0.6\tcat", r"line 9: '0.6' is not the logarithm of a probability"),
        ("-0.6\tcat", "nan\tcat", r"line 9: 'nan' is not the logarithm"),
        ("-0.3", "inf", r"line 7: 'inf' is not a back-off weight"),
        ("-0.2\tthe cat", "-0.2\tthe", r"line 14: 2 columns; a 2-gram has"),
        ("ngram 3=1", "ngram 3=2", r"line 20: 1 columns|says|3-gram"),
        ("\\end\\\n", "", r"ends before .end"),
        ("\\data\\", "data", r"ends before .data"),
        ("ngram 1=4", "ngram 1=0", r"holds no word"),
    ],
)
def test_a_damaged_arpa_file_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        read_arpa(arpa(tmp_path, ARPA.replace(old, new, 1)))


def test_longer_n_grams_are_left_out(tmp_path: Path) -> None:
    text = ARPA.replace("ngram 3=1", "ngram 3=1\nngram 4=1")
    text = text.replace("\\end\\", "\\4-grams:\n-0.1\t<s> the cat </s>\n\n\\end\\")
    assert len(read_arpa(arpa(tmp_path, text)).grams) == 3


def test_marks_of_a_sentence_are_no_words() -> None:
    with pytest.raises(InputError, match=r"'</s>', which is no word"):
        estimate([["a", "</s>"]])
    with pytest.raises(InputError, match="no word to estimate"):
        estimate([[], []])


GOLDEN = Path(__file__).parents[1] / "fixtures" / "kneser_ney"


def test_estimates_are_those_of_lmplz() -> None:
    """lmplz.arpa.gz was made by KenLM's lmplz (kenlm-ex 0.2.1, ``lmplz -o 3``) from train.txt.

    The text is babble of our own. lmplz computes in single precision.
    """
    train, test = ([line.split() for line in (GOLDEN / f"{name}.txt").read_text().splitlines()]
                   for name in ("train", "test"))  # fmt: skip
    ours, theirs = NGram(estimate(train)), load_arpa(GOLDEN / "lmplz.arpa.gz")
    assert set(ours.words) == set(theirs.words)
    assert ours.three.size == theirs.three.size
    a, b, c = np.array(
        [triple for line in test for triple in zip(*(line[k:] for k in range(3)), strict=False)]
    ).T
    found, golden = (m.log_probs(m.ids(a), m.ids(b), m.ids(c)) for m in (ours, theirs))
    assert found == pytest.approx(golden, abs=2e-6)
    assert ours.perplexity(test) == pytest.approx(theirs.perplexity(test), rel=1e-6)


def test_a_text_without_rare_words_falls_back_to_fixed_discounts() -> None:
    """Every pair occurs often, so there is nothing to tell the discounts from."""
    model = NGram(estimate([["a", "b"]] * 50))
    assert 0.9 < np.exp(model.log_prob("b", (START, "a"))) < 1.0
