"""Word times: from the embedded aligner, and from the files of other tools."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_audio, read_corpus
from voxrisk.protect.aligner import align, align_utterance
from voxrisk.protect.alignment import read_alignment, write_alignment
from voxrisk.protect.slicing import Word
from voxrisk.types import InputError

WORDS = [Word("HELLO", 0.5, 0.9), Word('"YOU"', 1.1, 1.6)]

LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2.0
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 2.0
        intervals: size = 4
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = ""
        intervals [2]:
            xmin = 0.5
            xmax = 0.9
            text = "HELLO"
        intervals [3]:
            xmin = 0.9
            xmax = 1.1
            text = ""
        intervals [4]:
            xmin = 1.1
            xmax = 1.6
            text = \"\"\"YOU\"\"\"
    item [2]:
        class = "TextTier"
        name = "notes 3"
        xmin = 0
        xmax = 2.0
        points: size = 1
        points [1]:
            number = 0.7
            mark = "x 5"
"""
SHORT = """File type = "ooTextFile"
Object class = "TextGrid"

0
2.0
<exists>
1
"IntervalTier"
"anna - words"
0
2.0
4
0
0.5
""
0.5
0.9
"HELLO"
0.9
1.1
""
1.1
1.6
\"\"\"YOU\"\"\"
"""
SUPERVISION = {
    "id": "u1", "recording_id": "r", "start": 10.0, "duration": 2.0, "speaker": "s",
    "alignment": {"word": [["HELLO", 10.5, 0.4], ["", 10.9, 0.2], ['"YOU"', 11.1, 0.5, 0.9]]},
}  # fmt: skip


@pytest.mark.parametrize("text", [LONG, SHORT], ids=["long", "short"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_textgrid(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "u1.TextGrid").write_text(text, encoding=encoding)
    assert read_alignment(tmp_path) == {"u1": WORDS}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ctm", ';; comment\nu1 1 1.1 0.5 "YOU" 0.9\nu1 1 0.5 0.4 HELLO\nu1 1 0.9 0.2 <eps>\n'),
        ("a.alignment.txt", None),
        ("u1.json", None),
        ("a_supervisions.jsonl", json.dumps(SUPERVISION)),
        ("a.csv", 'utterance,word,start,end\nu1,HELLO,0.5,0.9\nu1,"""YOU""",1.1,1.6\n'),
    ],
)
def test_the_forms_of_other_tools(tmp_path: Path, name: str, text: str | None) -> None:
    expected = WORDS
    if name == "a.alignment.txt":
        text = 'u1 ",HELLO,,YOU," "0.5,0.9,1.1,1.6,2.0"\n'
        expected = [WORDS[0], Word("YOU", 1.1, 1.6)]
    if name == "u1.json":
        rows = [
            {"word": "HELLO", "case": "success", "start": 0.5, "end": 0.9},
            {"word": "THERE", "case": "not-found-in-audio"},
            {"word": '"YOU"', "case": "success", "start": 1.1, "end": 1.6},
        ]
        text = json.dumps({"transcript": "x", "words": rows})
        expected = [WORDS[0], Word("THERE"), WORDS[1]]
    assert text is not None
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_alignment(tmp_path / name) == {"u1": expected}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ctm", "u1 1 0.5 0.4 HI\n"),
        ("a.alignment.txt", 'u1 ",HI" "0.5,0.9"\n'),
        ("u1.json", '{"words": [{"word": "HI", "case": "success", "start": 0.5, "end": 0.9}]}'),
        ("a.csv", "utterance,word,start,end\nu1,HI,0.5,0.9\n"),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_id(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert read_alignment(tmp_path / name) == {"u1": [Word("HI", 0.5, 0.9)]}


def test_gzipped_lhotse_supervisions(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "s.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(SUPERVISION) + "\n")
    assert read_alignment(tmp_path) == {"u1": WORDS}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.ctm", "u1 1 0.5 0.4\n", r"a\.ctm line 1: expected"),
        ("a.ctm", "u1 1 soon 0.4 HI\n", "line 1: the time is 'soon', not a number"),
        ("a.ctm", "u1 1 1_0 0.4 HI\n", "line 1: the time is '1_0', not a number"),
        ("a.ctm", "u1 1 nan 0.4 HI\n", "line 1: the time is nan; it must be finite"),
        ("a.alignment.txt", 'u1 ",HI" "0.5"\n', "line 1: 2 words but 1 times"),
        ("a.alignment.txt", "u1 HI 0.5\n", "line 1: expected"),
        ("u1.json", "[1]", "is not an alignment by Gentle"),
        ("u1.TextGrid", LONG[: len(LONG) // 2], "is not a whole TextGrid"),
        ("u1.TextGrid", LONG.replace('"words"', '"phones"'), "no tier 'words' .*'phones'"),
        ("a.csv", "utterance,word\nu1,HI\n", "line 1: the columns must be"),
        ("a.xml", "", "not a known alignment"),
        ("a.ctm", "u1 1 0.5 0.4 HI u2 1 0.5\n", r"a\.ctm line 1: expected"),
        ("a.csv", "utterance,word,start,end\nu1,HI,0,5,0,9\n", "line 2: not as many cells"),
        ("a.csv", "utterance,word,start,end\nu1,HI\n", "line 2: not as many cells"),
        ("a.csv", "utterance,word,start,end\nu1,HI,0.9,0.5\n", "ends at 0.5 s, before it begins"),
        ("a.alignment.txt", 'u1 "A,B" "5.0,0.9"\n', "line 1: the times go back"),
        ("a.jsonl", '{"start": 0, "alignment": {"word": []}}\n', "line 1: no id"),
        ("a.jsonl", '{"id": "u", "start": 0, "alignment": {"word": [["A", 1]]}}\n', "is not .word"),
        ("u1.json", "[" * 100_000, "cannot be read as an alignment"),
        ("u1.TextGrid", LONG.replace("size = 4", "size = 3"), "where a text is needed"),
        ("u1.TextGrid", LONG.replace("xmax = 0.9", "xmax = 0_9"), "= 0_9.*no part of a TextGrid"),
        ("u1.TextGrid", LONG.replace('"IntervalTier"', '"TextTier"'), "where a text is needed"),
        ("u1.TextGrid", LONG.replace("size = 4", "size = []"), "no part of a TextGrid"),
    ],
)
def test_a_bad_alignment_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_alignment(tmp_path / name)


def test_an_utterance_aligned_twice_is_an_error(tmp_path: Path) -> None:
    for name in ("a.ctm", "b.ctm"):
        (tmp_path / name).write_text("u1 1 0.5 0.4 HI\n")
    with pytest.raises(InputError, match=r"b\.ctm: 'u1' is already aligned in .*a\.ctm"):
        read_alignment(tmp_path)


def test_the_plain_table_keeps_words_without_times(tmp_path: Path) -> None:
    aligned = {"u1": [*WORDS, Word("MUMMERIES")]}
    write_alignment(tmp_path / "words.csv", aligned)
    assert read_alignment(tmp_path / "words.csv") == aligned


@pytest.fixture(scope="module")
def speech(shared: Path) -> list[Utterance]:
    return read_corpus(shared / "librispeech_eval")


def test_words_lie_in_order_inside_the_speech(speech: list[Utterance]) -> None:
    for row in speech[1:60:6]:
        words = [word for word in align_utterance(row) if word.start is not None]
        times = [time for word in words for time in (word.start, word.end)]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= (row.duration or 0.0) + 1e-3


def test_an_unknown_word_gets_no_times_and_its_neighbours_keep_theirs(
    speech: list[Utterance],
) -> None:
    """The same speech with one word misspelled: that word is not found, the rest hardly moves."""
    row = speech[1]
    assert row.text is not None
    known = align_utterance(row)
    assert "LADY" in row.text
    with_unknown = align(read_audio(row), row.text.replace("LADY", "LAYDYQX"))
    assert [w.text for w in with_unknown if w.start is None] == ["LAYDYQX"]
    for one, two in zip(known, with_unknown, strict=True):
        if two.start is not None and two.end is not None:
            assert one.start == pytest.approx(two.start, abs=0.05)
            assert one.end == pytest.approx(two.end, abs=0.05)


def test_alignment_does_not_depend_on_what_was_aligned_before(speech: list[Utterance]) -> None:
    alone = align_utterance(speech[2])
    align_utterance(speech[3])
    assert align_utterance(speech[2]) == alone


def test_punctuation_and_case_do_not_matter(speech: list[Utterance]) -> None:
    row = speech[2]
    assert row.text == "SISTER NELL DO YOU HEAR THESE MARVELS"
    plain = align_utterance(row)
    written = align(read_audio(row), "“Sister Nell — do you hear these marvels?”")
    assert [(w.start, w.end) for w in plain] == [(w.start, w.end) for w in written]
    assert written[-1].text == "marvels?”"


def test_silence_moves_the_words_by_as_much(speech: list[Utterance]) -> None:
    """Half a second of the utterance's own background before it moves every word half a second."""
    import numpy as np

    row = speech[1]
    assert row.text is not None
    samples = read_audio(row)
    later = align(np.concatenate([samples[:4000], samples[:4000], samples]), row.text)
    for one, two in zip(align_utterance(row), later, strict=True):
        assert one.start is not None
        assert two.start == pytest.approx(one.start + 0.5, abs=0.05)


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [("1221-135766-0007", 2.41, 2.77), ("8555-284447-0004", 2.88, 3.10)],
)
def test_a_pause_is_no_part_of_a_word(
    speech: list[Utterance], name: str, begin: float, end: float
) -> None:
    """A quiet stretch between two words is a pause, not a "the" of half a second."""
    row = next(row for row in speech if row.utterance == name)
    samples = read_audio(row)
    quiet = samples[int(begin * 16_000) : int(end * 16_000)]
    assert (quiet**2).mean() < (samples**2).mean() / 100
    times = [(w.start, w.end) for w in align_utterance(row)]
    assert not [
        (s, e) for s, e in times if s is not None and e is not None and s < begin and e > end
    ]


def test_other_languages_are_refused(speech: list[Utterance]) -> None:
    with pytest.raises(InputError, match="knows English only, not 'de'"):
        align(read_audio(speech[0]), "guten Tag", language="de")


def test_align_command_says_what_it_did_not_find(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "librispeech_eval" / "manifest.csv").read_text().splitlines()[:3]
    flac = shared / "librispeech_eval" / "flac"
    (tmp_path / "manifest.csv").write_text("\n".join(lines).replace(",flac/", f",{flac}/"))
    out = tmp_path / "words.csv"
    result = CliRunner().invoke(
        app, ["align", str(tmp_path / "manifest.csv"), "-o", str(out), "--workers", "1"]
    )
    assert "26 words of 2 utterances, 1 without times\nnot found: mummeries" in result.output
    assert sum(len(words) for words in read_alignment(out).values()) == 26


def test_word_times_do_not_depend_on_what_was_aligned_before(shared: Path) -> None:
    """The same table comes from any number of workers, whoever had which utterance."""
    rows = read_corpus(shared / "librispeech_eval")[1:40:10]
    forwards = [align_utterance(row) for row in rows]
    backwards = [align_utterance(row) for row in reversed(rows)]
    assert forwards == backwards[::-1]
