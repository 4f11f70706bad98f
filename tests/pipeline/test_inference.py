"""Attributes in an evaluation: attackers, notices, confounds and the third criterion."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from short_speech import cut_short
from simulated_attributes import rows
from voxrisk.corpus import Utterance, write_corpus
from voxrisk.corpus.attributes import read_attribute
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.attribute_attacks import Features, enough_speakers, infer
from voxrisk.pipeline.confounds import confounds, doubts
from voxrisk.pipeline.criteria.attributes import inference
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, write_yaml
from voxrisk.pipeline.verdict import give_verdict
from voxrisk.protect.targets import select_targets, speakers_of
from voxrisk.report.html import write_report
from voxrisk.results import InferenceResult, Results
from voxrisk.types import Estimate, InputError, Interval

SIZE = 12


def chosen(**more: object) -> Evaluation:
    given = {"anonymized": Path("b"), "effort": "quick", **more}
    return Evaluation(Path("a"), **given)  # type: ignore[arg-type]


def spoken(
    given: Sequence[Utterance], seen: Mapping[str, int], *, told: float, seed: int = 0
) -> Features:
    """Vectors of utterances: a voice for each speaker, and what is told of the class."""
    rng = np.random.default_rng(seed)
    voice = {s: rng.standard_normal(SIZE) for s in sorted({r.speaker for r in given})}
    place = np.random.default_rng(5).standard_normal((8, SIZE))
    vectors = np.stack(
        [voice[r.speaker] + told * place[seen[r.utterance]] + rng.standard_normal(SIZE)
         for r in given]
    )  # fmt: skip
    return Features(tuple(given), {"voice": vectors.astype(np.float32)})


def inferred(
    before: float, after: float, columns: Mapping[str, list[str]] | None = None, **more: object
) -> InferenceResult:
    given = rows(dict(columns or {"gender": ["f", "m"] * 12}), utterances=6)
    name = next(iter(columns or {"gender": []}))
    attribute = read_attribute(given, name)
    heard = {
        "original": spoken(given, attribute.label, told=before),
        "anonymized": spoken(given, attribute.label, told=after, seed=1),
    }
    return infer(chosen(**more), [(attribute, "hide")], heard, {})


@pytest.fixture(scope="module")
def hidden() -> InferenceResult:
    """Gender that original speech tells and anonymized speech does not."""
    return inferred(3.0, 0.0)


@pytest.fixture(scope="module")
def leaked() -> InferenceResult:
    """Gender that both tell."""
    return inferred(3.0, 3.0)


def test_every_attacker_has_every_figure_for_each_length(leaked: InferenceResult) -> None:
    (gender,) = leaked.attributes
    assert [(a.attacker, a.tests) for a in gender.attacks][-1] == ("original", "original")
    assert {a.attacker for a in gender.attacks} == {"original", "ignorant", "informed"}
    for attack in gender.attacks:
        assert attack.learned_from == "other speakers"
        assert attack.lengths == [1, 3]
        for name in ("uar", "attribute_auc", "attribute_bits", "attribute_worst"):
            for length in (1, 3):
                e = attack.get(name, length)
                assert e is not None
                assert e.interval is not None
                assert e.interval.low <= e.value <= e.interval.high
        assert np.allclose(np.sum(attack.confusion, axis=1), 1.0, atol=1e-3)
        assert sum(n for _, _, n in attack.calibration) == 24 * 6


def test_an_attribute_that_speech_still_tells_is_the_finding(leaked: InferenceResult) -> None:
    found = inference((), leaked)
    assert found.level == "as original"
    assert found.value is not None
    assert found.value.value > 0.9
    assert "gender rightly in" in found.sentence
    assert "guessing: 50.0" in found.sentence
    headline = give_verdict((), (), inferred=leaked).headline
    assert "can be told from the voices as well as before." in headline


def test_an_attribute_that_is_gone_is_at_chance(hidden: InferenceResult) -> None:
    found = inference((), hidden)
    assert found.level == "at chance"
    assert "not shown to beat guessing" in found.sentence
    assert "can be told" not in give_verdict((), (), inferred=hidden).headline


def test_what_not_even_original_speech_tells_is_no_protection() -> None:
    found = inference((), inferred(0.0, 0.0))
    assert found.level == "not assessed"
    assert "cannot be told even from original speech" in found.sentence


def test_an_order_that_beats_guessing_is_above_chance_whatever_classes_are_named(
    hidden: InferenceResult,
) -> None:
    (gender,) = hidden.attributes

    def ordered(e: Estimate) -> Estimate:
        if e.name != "attribute_auc":
            return e
        return replace(e, value=0.7, interval=Interval(0.6, 0.8, 0.95, "by hand"))

    attacks = tuple(replace(a, figures=tuple(map(ordered, a.figures))) for a in gender.attacks)
    found = InferenceResult(attributes=(replace(gender, attacks=attacks),))
    assert inference((), hidden).level == "at chance"
    assert inference((), found).level == "above chance"


def test_nothing_known_is_not_assessed() -> None:
    assert inference((), None).level == "not assessed"
    assert "--hide" in inference((), None).sentence


def test_the_worst_attribute_comes_first() -> None:
    given = rows({"gender": ["f", "m"] * 12, "accent": ["a", "a", "b", "b"] * 6}, utterances=6)
    both = [read_attribute(given, name) for name in ("gender", "accent")]
    heard = {}
    for k, kind in enumerate(("original", "anonymized")):
        parts = [spoken(given, a.label, told=t, seed=10 * k + i).vectors["voice"]
                 for i, (a, t) in enumerate(zip(both, (1.0, 4.0), strict=True))]  # fmt: skip
        heard[kind] = Features(tuple(given), {"voice": np.concatenate(parts, axis=1)})
    found = infer(chosen(), [(a, "hide") for a in both], heard, {})
    card = inference((), found)
    assert card.sentence.startswith("From ")
    assert card.sentence.index("accent rightly") < card.sentence.index("gender rightly")
    people = {n.source: n.left.value for n in found.together}
    assert people["true"] <= people["original"] < 24
    assert people["anonymized"] < 24
    assert people["true"] == pytest.approx(6.0)


def test_same_gender_targets_give_the_gender_away_and_random_or_opposite_ones_do_not() -> None:
    """A converted utterance sounds like its target: who draws targets of one gender tells it.

    Opposite targets tell it too, to whoever learns from anonymized speech, turned round.
    """
    given = rows({"gender": ["f", "m"] * 12}, utterances=6)
    attribute = read_attribute(given, "gender")
    as_was = spoken(given, attribute.label, told=3.0)
    place = {r.utterance: i for i, r in enumerate(given)}
    found = {}
    for select in ("same-gender", "opposite-gender", "random"):
        targets = select_targets(given, speakers_of(given), select=select)
        vectors = np.stack([as_was.vectors["voice"][place[f"{t}-0"]] for (t,) in targets])
        heard = {"original": as_was, "anonymized": Features(tuple(given), {"voice": vectors})}
        (gender,) = infer(chosen(), [(attribute, "hide")], heard, {}).attributes
        found[select] = {
            a.attacker: a.get("uar", 1) for a in gender.attacks if a.tests == "anonymized"
        }
    same, opposite, random = (found[s] for s in ("same-gender", "opposite-gender", "random"))
    assert same["ignorant"].value > 0.9  # type: ignore[union-attr]
    assert opposite["ignorant"].value < 0.6  # type: ignore[union-attr]
    assert opposite["informed"].value > 0.9  # type: ignore[union-attr]
    for e in random.values():
        assert e is not None
        assert e.interval is not None
        assert e.interval.low <= 0.5


def test_training_speech_that_knows_the_attribute_is_learned_from() -> None:
    given = rows({"gender": ["f", "m"] * 8}, utterances=4)
    attribute = read_attribute(given, "gender")
    heard = {kind: spoken(given, attribute.label, told=2.0, seed=i)
             for i, kind in enumerate(("original", "anonymized"))}  # fmt: skip
    others = [replace(r, utterance=f"t{r.utterance}", speaker=f"t{r.speaker}") for r in given]
    known = {r.utterance: int(r.gender == "m") for r in others}
    learned = {kind: spoken(others, known, told=2.0, seed=7) for kind in ("original", "similar")}
    (gender,) = infer(chosen(), [(attribute, "hide")], heard, learned).attributes
    from_training = {a.attacker for a in gender.attacks if a.learned_from == "training speech"}
    assert from_training == {"original", "ignorant", "semi-informed"}
    both = {a.attacker for a in gender.attacks if a.learned_from == "both"}
    assert both == {"original", "ignorant"}
    few = [r for r in others if r.speaker in ("ts00", "ts01", "ts03")]
    assert enough_speakers(others, attribute)
    assert not enough_speakers(few, attribute)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("language", ["en"] * 6 + ["pl"] * 6, "language"),
        ("text", ["one sentence"] * 6 + ["another one"] * 6, "text"),
        ("session", ["studio"] * 6 + ["phone"] * 6, "session"),
        ("microphone", ["old"] * 6 + ["new"] * 6, "the recording (microphone)"),
    ],
)
def test_a_confound_is_said_aloud(column: str, values: list[str], words: str) -> None:
    given = rows({"health": ["well"] * 6 + ["ill"] * 6, column: values})
    (found,) = confounds(given, read_attribute(given, "health"), seed=0)
    assert found.facts["other"] == words
    assert "may have recognised" in found.text


def test_what_goes_with_nothing_or_belongs_to_one_speaker_is_no_confound() -> None:
    given = rows(
        {
            "health": ["well"] * 6 + ["ill"] * 6,
            "language": ["en", "pl"] * 6,
            "session": [f"session {i}" for i in range(12)],
        }
    )
    assert confounds(given, read_attribute(given, "health"), seed=0) == []


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("accent", ["a", "b"] * 10 + [""] * 3, "accent is not known of 3 of 23 speakers"),
        ("accent", ["a", "b"] * 10 + ["c"] * 2, "left out: 1 of them, with 2 speakers"),
        ("age", [*map(str, range(20, 60)), "old", "forty"], "of 2 it is text or no possible value"),
        ("town", [f"t{i % 30}" for i in range(300)], "30 classes: guessing is right in 3.3\u00a0%"),
        ("town", [f"t{i}" for i in range(30)], "of 30 classes only 0 have at least 3 speakers"),
        ("accent", ["a", "b"] * 5, "A class of accent has only 5 speakers"),
        ("age", ["30"] * 9, "everybody has the same value: there is nothing to infer"),
    ],
    ids=["missing", "two speakers", "text", "30", "30 alone", "few", "constant"],
)
def test_what_is_left_out_refused_or_rests_on_few_is_said(
    name: str, values: list[str], said: str
) -> None:
    given = rows({name: values})
    found = [n.text for n in doubts(given, read_attribute(given, name), asked=True, seed=0)]
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("name", "values", "speakers"),
    [
        ("accent", ["a", "b"] * 6 + [""] * 3, (6, 6)),  # three speakers without a label
        ("accent", ["a", "b"] * 6 + ["c"] * 2, (6, 6)),  # a class of two
        ("age", [f"{20 + i} years" for i in range(24)] + ["old"], (6, 6, 6, 6)),
        ("town", [f"t{i % 30:02d}" for i in range(90)], (3,) * 30),
    ],
    ids=["missing", "two speakers", "text", "30"],
)
def test_awkward_columns_are_attacked_all_the_way(
    name: str, values: list[str], speakers: tuple[int, ...]
) -> None:
    """Who is left out is in neither training nor test, and what is left is told as ever."""
    given = rows({name: values}, utterances=2)
    attribute = read_attribute(given, name)
    place = 6.0 * np.eye(31)[[attribute.label.get(r.utterance, 30) for r in given]]
    place[:, -1] = [attribute.value.get(r.utterance, 0.0) for r in given]  # along a line
    noise = np.random.default_rng(0).standard_normal(place.shape)
    heard = {
        k: Features(tuple(given), {"voice": place + noise}) for k in ("original", "anonymized")
    }
    (found,) = infer(chosen(), [(attribute, "hide")], heard, {}).attributes
    assert found.speakers == speakers
    for attack in found.attacks:
        told = attack.get("uar", 1)
        assert told is not None
        assert told.chance == pytest.approx(1 / len(speakers))
        assert told.n["speaker"] == sum(speakers)
        assert told.interval is not None
        assert told.interval.low > told.chance


def test_options_travel_and_contradictions_are_refused(tmp_path: Path) -> None:
    asked = chosen(hide=("age",), keep=("emotion",))
    (tmp_path / "e.yaml").write_text(write_yaml(asked, tmp_path), encoding="utf-8")
    again = read_yaml(tmp_path / "e.yaml")
    assert (again.hide, again.keep) == (("age",), ("emotion",))
    with pytest.raises(InputError, match="'age' is to be hidden and kept"):
        chosen(hide=("age",), keep=("age",))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """A real evaluation of eight synthetic voices whose gender is known, with a column for age."""
    folder = tmp_path_factory.mktemp("inference")
    spoken = cut_short(make_demo(folder / "demo", voices=8, sentences=2), folder / "short")
    given = [replace(r, age=None) for r in spoken]
    people = sorted({r.speaker for r in given})
    half = [replace(r, gender="f" if people.index(r.speaker) % 2 else "m") for r in given]
    aged = [replace(r, age="30" if people.index(r.speaker) < 7 else None) for r in half]
    write_corpus(folder / "speech" / "manifest.csv", aged)
    found = evaluate_speech(
        Evaluation(folder / "speech", anonymizer="mcadams", effort="quick", utility=False),
        folder / "run",
    )
    return folder / "run", found


def test_a_run_infers_gender_and_age_where_they_are_known(run: tuple[Path, Results]) -> None:
    folder, results = run
    assert results == Results.read(folder)
    assert results.inference is not None
    gender, age = results.inference.attributes
    assert (gender.name, gender.classes, gender.speakers) == ("gender", ("f", "m"), (4, 4))
    ears = {"ecapa-voxceleb", "prosody", "pitch", "all features together"}
    assert {a.features for a in gender.attacks} <= ears
    assert age.refused == "everybody has the same value: there is nothing to infer"
    codes = {n.code for n in results.notices}
    assert {"attribute_absent", "attribute_few", "attribute_origin"} <= codes
    assert results.verdict is not None
    assert results.verdict["inference"].sentence


def test_the_report_shows_what_was_inferred(run: tuple[Path, Results], tmp_path: Path) -> None:
    _, results = run
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'data-attribute="gender"' in page
    assert "What can be inferred about people" in page
    assert 'data-calibration="anonymized"' in page


def test_a_column_that_is_not_there_stops_before_any_work(run: tuple[Path, Results]) -> None:
    folder, _ = run
    wrong = Evaluation(
        folder.parent / "speech", anonymizer="mcadams", effort="quick", utility=False,
        hide=("shoe",),
    )  # fmt: skip
    with pytest.raises(InputError, match="no column 'shoe' in the manifest"):
        evaluate_speech(wrong, folder.parent / "wrong")
    assert not list((folder.parent / "wrong" / "stages").glob("anonymize-*"))  # before any work
