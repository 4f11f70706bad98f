"""The public calls: paths as text, one screen of help, and wrong types end in words."""

import inspect
import pydoc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxrisk as vr
from report_sample import sample
from simulated_voices import voices
from voxrisk.corpus import Utterance, write_audio, write_corpus
from voxrisk.files.embeddings import write_embeddings

SAME, OTHER = [2.1, 1.7, 3.0, 0.4], [-1.0, 0.2, 0.9, -2.2, -0.3]
SCREEN = 40  # lines


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two tones, two files of embeddings, and a run."""
    folder = tmp_path_factory.mktemp("api")
    rows = []
    for k, name in enumerate("ab"):
        tone = np.sin(np.arange(8_000) * (0.1 + k / 10)).astype(np.float32) / 2
        write_audio(folder / f"{name}.wav", tone, rate=16_000)
        rows.append(Utterance(name, folder / f"{name}.wav", name))
    write_corpus(folder / "manifest.csv", rows)
    for name in "et":
        write_embeddings(folder / f"{name}.npz", voices(8, 6, seed=ord(name), tag=name))
    sample().write(folder)
    return folder


def test_paths_may_be_text_everywhere(place: Path, tmp_path: Path) -> None:
    assert len(vr.read_corpus(str(place / "manifest.csv"))) == 2
    held, tried = (vr.read_embeddings(str(place / f"{n}.npz")) for n in "et")
    found = vr.measure_crowd(str(place / "e.npz"), place / "t.npz", L=1, N=4, resamples=0)
    again = vr.measure_crowd(held, tried, L=(1,), N=[np.int64(4)], resamples=0)
    assert found.linkability[1, 4] == again.linkability[1, 4]
    run = vr.Results.read(str(place))
    vr.write_report(str(place), str(tmp_path / "r.html"))
    vr.compare({"a": str(place), "b": run}, str(tmp_path / "c.html"))
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "c.html"}
    made = vr.anonymize(str(place / "manifest.csv"), str(tmp_path / "out"), workers=1)
    assert len(made) == 2


def test_lists_make_embeddings_and_trials() -> None:
    held = vr.Embeddings(["u1", "u2"], ["a", "b"], [[1, 2], [3, 4]])
    assert held.vectors.shape == (2, 2)
    assert held.vectors.dtype.kind == "f"
    assert vr.Trials([1, 2], ["a", "a"], ["a", "b"]).sizes["target"] == 1


def evaluate(**choices: Any) -> Callable[[Path], object]:
    """A call that must end before anything runs."""
    given = {"out": "o", "anonymizer": "mcadams", **choices}
    return lambda place: vr.evaluate(str(place / "manifest.csv"), **given)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "eer of words": (lambda p: vr.eer(["a"], OTHER), "target scores must be numbers"),
    "eer of a text": (lambda p: vr.eer("abc", OTHER), "target scores must be numbers"),
    "eer of nothing": (lambda p: vr.eer(None, OTHER), "flat array"),
    "zebra of words": (lambda p: vr.zebra(SAME, ["a"]), "nontarget scores must be numbers"),
    "d_sys of words": (lambda p: vr.d_sys(["a"], OTHER), "target scores must be numbers"),
    "trials of words": (lambda p: vr.Trials(["x"], ["a"], ["a"]), "scores must be numbers"),
    "scores as a list": (lambda p: vr.measure_scores(SAME), r"takes voxrisk.Trials.* is a list"),
    "vectors as text": (lambda p: vr.Embeddings(["a"], ["b"], ["x"]), "must be numbers"),
    "a crowd of nothing": (lambda p: vr.measure_crowd(None, None), "this is None"),
    "L as text": (lambda p: vr.measure_crowd(p / "e.npz", p / "t.npz", L="1"), "L is '1'"),
    "an option of nobody": (
        lambda p: vr.measure_crowd(p / "e.npz", p / "t.npz", nosuch=1),
        "no option 'nosuch'; there is .*resamples",
    ),
    "a corpus of 3": (lambda p: vr.read_corpus(3), r"this is 3 \(int\)"),
    "embeddings of 3": (lambda p: vr.read_embeddings(3), "embeddings is given by its path"),
    "results of 3": (lambda p: vr.Results.read(3), "a run is given by its path"),
    "anonymize 3": (lambda p: vr.anonymize(3, "o"), "a corpus is given by its path"),
    "anonymize a list of text": (lambda p: vr.anonymize(["a.wav"], "o"), "this is a list of str"),
    "anonymize into 3": (lambda p: vr.anonymize(p / "manifest.csv", 3), "the output"),
    "anonymize by a function": (
        lambda p: vr.anonymize(p / "manifest.csv", "o", len),
        "your own as 'package.module:function'",
    ),
    "anonymize with a word as seed": (
        lambda p: vr.anonymize(p / "manifest.csv", "o", seed="x"), "seed is 'x'; Expected `int`",
    ),
    "anonymize with another option": (
        lambda p: vr.anonymize(p / "manifest.csv", "o", nosuch=1), "no option 'nosuch'",
    ),
    "anonymize with options as text": (
        lambda p: vr.anonymize(p / "manifest.csv", "o", options="a=1"), "options is 'a=1'",
    ),
    "embed 3": (lambda p: vr.embed(3, "o.npz"), "a corpus is given by its path"),
    "embed by 3": (lambda p: vr.embed(p / "manifest.csv", "o.npz", 3), "an encoder"),
    "embed with another option": (
        lambda p: vr.embed(p / "manifest.csv", "o.npz", nosuch=1), "no option 'nosuch'",
    ),
    "compare one": (lambda p: vr.compare(str(p), "c.html"), "at least two runs"),
    "compare 3": (lambda p: vr.compare(3, "c.html"), "at least two runs"),
    "a report of 3": (lambda p: vr.write_report(3, "r.html"), "a run is given by its path"),
    "a report to 3": (lambda p: vr.write_report(p, 3), "the page"),
    "evaluate nothing": (lambda p: vr.evaluate(out="o"), "embeddings or --scores"),
    "evaluate 3": (lambda p: vr.evaluate(3, out="o", anonymizer="x"), "3 is not a path"),
    "evaluate by 3": (evaluate(anonymizer=3), r"Expected `str \| null`, got `int` \(anonymizer\)"),
    "evaluate by a function": (evaluate(anonymizer=len), "as 'package.module:function'"),
    "evaluate by nobody": (evaluate(nosuch=1), "no option 'nosuch'; it has original,"),
    "an effort of 3": (evaluate(effort=3), r"Expected `str`, got `int` \(effort\)"),
    "an effort of its own": (evaluate(effort="much"), "effort is 'much'; it must be quick"),
    "a word as seed": (evaluate(seed="x"), r"Expected `int`, got `str` \(seed\)"),
    "no as a text": (evaluate(utility="no"), r"Expected `bool`, got `str` \(utility\)"),
    "one attacker as a text": (evaluate(attackers="nosuch"), "no attacker 'nosuch'"),
    "training speech of 3": (evaluate(train=3), r"3 is not a path \(train\)"),
    "options as a text": (evaluate(options="alpha=1"), r"got `str` \(options\)"),
    "trials of 3": (evaluate(trials=3), "a list of trials cannot be 3"),
    "a run in 3": (evaluate(out=3), r"the folder of the run \(out\)"),
    "scores without a name": (
        lambda p: vr.evaluate(out="o", scores="s.csv"), "scores are given as {'informed': 'file'}",
    ),
    "scores of 3": (lambda p: vr.evaluate(out="o", scores={"x": 3}), "cannot be 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_ends_in_words(
    case: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, said = WRONG[case]
    with pytest.raises(vr.InputError, match=said):
        call(place)
    assert not any(tmp_path.iterdir()), "nothing was begun"


@pytest.mark.parametrize("name", [n for n in vr.__all__ if n != "__version__"])
def test_help_fits_a_screen(name: str) -> None:
    """Of a class its own words: what Python adds about every class is not ours."""
    thing = getattr(vr, name)
    if inspect.isclass(thing):
        text = inspect.getdoc(thing) or ""
    else:
        text = pydoc.plain(pydoc.render_doc(thing))
    lines = text.splitlines()
    assert 1 <= sum(-(-len(line) // 100) or 1 for line in lines) <= SCREEN
    assert max(map(len, lines)) <= 400, "a signature is no wall of types"
