"""What the page says of words: who heard them, how many, and first of all whether to believe it."""

import re
from dataclasses import replace
from pathlib import Path

from report_sample import sample
from voxrisk.report.html import write_report
from voxrisk.results import UtilityResult
from voxrisk.types import Estimate


def heard(name: str, value: float, n: dict[str, int]) -> Estimate:
    parameters = {"asr": "Whisper base", "language": "de+en"}
    return Estimate(name, value, 1.0, {"utterance": 19, "speaker": 19, **n}, "", None, parameters)


def section(utility: UtilityResult, folder: Path) -> str:
    """The words of the section on usefulness."""
    write_report(replace(sample(), utility=utility), folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r'<section id="utility".*?</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def test_recogniser_and_words_are_named_and_a_doubt_comes_first(tmp_path: Path) -> None:
    counts = {"wer": {"word": 1235}, "cer": {"character": 6001, "left_out": 3}}
    figures = {
        name: {side: heard(name, 1.31, n) for side in ("original", "anonymized")}
        for name, n in counts.items()
    }
    why = "the recogniser does not know this speech"
    text = section(UtilityResult(figures=figures, untrusted=dict.fromkeys(counts, why)), tmp_path)
    assert "1,235 words of 19 utterances, heard by Whisper base (de, en)" in text
    assert "6,001 characters of 19 utterances, 3 left out, heard by" in text
    doubt = "Word error rate (WER) and Character error rate (CER) cannot be believed."
    assert text.count(doubt) == 1
    assert text.index(doubt) < text.index("1,235 words")
    assert f"{doubt} The recogniser does not know this speech." in text
    assert "because the word error rate cannot be believed" in text
    believed = section(UtilityResult(figures=figures), tmp_path)
    assert "cannot be believed" not in believed.lower()
