"""The informed attacker from folders alone, and every way in which the folders can be wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from short_speech import cut_short
from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.given import kind_control, side_of, told_apart
from voxrisk.protect.run import anonymize
from voxrisk.results import Control, Results
from voxrisk.types import Embeddings, InputError

pytestmark = pytest.mark.usefixtures("plain_encoder")


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty voices: six under test, the others train; both before and after mcadams."""
    folder = tmp_path_factory.mktemp("voices")
    rows = cut_short(make_demo(folder / "demo", voices=20, sentences=2), folder / "short")
    tested = set(sorted({row.speaker for row in rows})[::3][:6])
    for name, mine in (
        ("tested", [row for row in rows if row.speaker in tested]),
        ("others", [row for row in rows if row.speaker not in tested]),
    ):
        write_corpus(folder / f"{name}.csv", mine)
        anonymize(mine, folder / f"{name}-mcadams", "mcadams")
    return folder


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stages")


def evaluated(voices: Path, folder: Path, stages: Path, **more: Any) -> Results:
    given: dict[str, Any] = {
        "anonymized": voices / "tested-mcadams", "attackers": ("informed",), "encoder": "plain",
        "effort": "quick", "utility": False, **more,
    }  # fmt: skip
    return evaluate_speech(Evaluation(voices / "tested.csv", **given), folder, stages=stages)


def control(results: Results, code: str, attacker: str = "informed") -> Control:
    return next(c for c in results.controls if (c.code, c.attacker) == (code, attacker))


def moved(rows: list[Utterance]) -> list[Utterance]:
    """Each file under the name of another speaker's."""
    turned = [*rows[5:], *rows[:5]]
    return [replace(a, path=b.path) for a, b in zip(rows, turned, strict=True)]


@pytest.mark.parametrize("originals", [True, False])
def test_folders_train_the_attacker_that_the_anonymizer_trains(
    originals: bool, voices: Path, tmp_path: Path, stages: Path
) -> None:
    """The very speech that --anonymizer makes, given as a folder: the same scores."""
    made = evaluated(
        voices, tmp_path / "made", stages, anonymized=None, anonymizer="mcadams",
        train=voices / "others.csv",
    )  # fmt: skip
    tested = {row.speaker for row in read_corpus(voices / "tested.csv")}
    folders = {
        read_corpus(path)[0].speaker in tested: path for path in stages.glob("anonymize-*/speech")
    }
    published, speech = folders[True], folders[False]
    given = evaluated(
        voices, tmp_path / "given", stages, anonymized=published, train_anonymized=speech,
        train=voices / "others.csv" if originals else None,
    )  # fmt: skip
    scores = [
        (tmp_path / run / "scores" / "scores-informed.csv").read_text() for run in ("made", "given")
    ]
    assert scores[0] == scores[1]
    assert control(given, "kind").passed is True
    assert control(given, "training").passed is True
    assert "given as anonymized alike" in given.attackers["informed"].extractor
    assert not [c for c in made.controls if c.code == "kind"]
    assert "untrained" not in {n.code for n in given.notices}


def test_training_speech_that_was_not_anonymized_fails_its_control(
    voices: Path, tmp_path: Path, stages: Path
) -> None:
    """The training control cannot see it: people are recognised well in original speech."""
    results = evaluated(voices, tmp_path / "run", stages, train_anonymized=voices / "others.csv")
    assert control(results, "kind").passed is False
    assert not results.attackers["informed"].ranked
    assert results.verdict is not None
    assert "informed attacker failed its control" in results.verdict.headline or (
        results.verdict.headline.startswith("This test failed")
    )


def test_training_speech_that_was_not_anonymized_is_refused_beside_its_originals(
    voices: Path, tmp_path: Path, stages: Path
) -> None:
    with pytest.raises(InputError, match="hold exactly the sound of their originals"):
        evaluated(
            voices, tmp_path / "run", stages, train=voices / "others.csv",
            train_anonymized=voices / "others.csv",
        )  # fmt: skip


def test_training_files_under_other_ids(voices: Path, tmp_path: Path, stages: Path) -> None:
    """Beside the originals they are refused; alone, their training fails its control."""
    write_corpus(tmp_path / "moved.csv", moved(read_corpus(voices / "others-mcadams")))
    with pytest.raises(InputError, match=r"moved\.csv: the anonymized files do not belong"):
        evaluated(
            voices, tmp_path / "a", stages, train=voices / "others.csv",
            train_anonymized=tmp_path / "moved.csv",
        )  # fmt: skip
    rows = read_corpus(voices / "others-mcadams")
    names = np.random.default_rng(1).permutation([row.speaker for row in rows]).tolist()
    mixed = [replace(row, speaker=name) for row, name in zip(rows, names, strict=True)]
    write_corpus(tmp_path / "mixed.csv", mixed)
    results = evaluated(voices, tmp_path / "b", stages, train_anonymized=tmp_path / "mixed.csv")
    assert control(results, "training").passed is False
    assert not results.attackers["informed"].ranked


@pytest.mark.parametrize("kind", ["tested.csv", "tested-mcadams"])
@pytest.mark.parametrize("under", ["the same names", "other names"])
def test_people_under_test_in_the_training_folder(
    kind: str, under: str, voices: Path, tmp_path: Path, stages: Path
) -> None:
    rows = [*read_corpus(voices / "others-mcadams"), *read_corpus(voices / kind)]
    if under == "other names":
        rows = [replace(r, speaker=f"x{r.speaker}", utterance=f"x{r.utterance}") for r in rows]
    write_corpus(tmp_path / "train.csv", rows)
    with pytest.raises(InputError, match="under test too"):
        evaluated(voices, tmp_path / "run", stages, train_anonymized=tmp_path / "train.csv")


def test_folders_without_a_common_id(voices: Path, tmp_path: Path, stages: Path) -> None:
    rows = [replace(r, utterance=f"x{r.utterance}") for r in read_corpus(voices / "others-mcadams")]
    write_corpus(tmp_path / "named.csv", rows)
    with pytest.raises(InputError, match="no utterance id is in both"):
        evaluated(
            voices, tmp_path / "run", stages, train=voices / "others.csv",
            train_anonymized=tmp_path / "named.csv",
        )  # fmt: skip


def test_originals_to_train_on_need_somebody_who_anonymizes_them(voices: Path) -> None:
    with pytest.raises(InputError, match="give --train-anonymized DIR"):
        Evaluation(voices, anonymized=voices, train=voices)


def test_targets_are_unlearned_where_the_training_folder_names_them(
    voices: Path, tmp_path: Path, stages: Path
) -> None:
    """The published speech need not name its targets: who trains has the training's."""
    rows = read_corpus(voices / "others-mcadams")
    named = [replace(r, extra={"target": f"t{i % 3}"}) for i, r in enumerate(rows)]
    write_corpus(tmp_path / "named.csv", named)
    asked = {"train_anonymized": tmp_path / "named.csv", "attackers": ("informed + erasing",)}
    results = evaluated(voices, tmp_path / "a", stages, **asked)
    assert "informed + erasing" in results.attackers
    assert control(results, "targets", "informed + erasing").passed is False  # made-up targets
    asked["train_anonymized"] = voices / "others-mcadams"
    with pytest.raises(InputError, match="no target voices"):
        evaluated(voices, tmp_path / "b", stages, **asked)


def test_the_enrolment_can_be_anonymized_apart(voices: Path, tmp_path: Path, stages: Path) -> None:
    """Trials alone are published; the enrolment has other draws, and its vectors are used."""
    rows = read_corpus(voices / "tested.csv")
    roles = {"1": "enroll", "2": "trial"}
    cast = [replace(row, extra={"role": roles[str(row.session)]}) for row in rows]
    write_corpus(tmp_path / "tested.csv", cast)
    tried = [r for r in read_corpus(voices / "tested-mcadams") if r.session == "2"]
    write_corpus(tmp_path / "published.csv", tried)
    enrolled = [row for row in cast if row.session == "1"]
    anonymize(enrolled, tmp_path / "own", "mcadams", seed=9)
    asked = {
        "anonymized": tmp_path / "published.csv", "enroll_anonymized": tmp_path / "own",
        "attackers": ("lazy-informed",),
    }  # fmt: skip
    results = evaluated(tmp_path, tmp_path / "run", stages, **asked)
    assert results.attackers["lazy-informed"].sizes["target"] == len(tried)
    assert "unpaired" not in {n.code for n in results.notices}
    with pytest.raises(InputError, match="hold exactly the sound of their originals"):
        evaluated(
            tmp_path,
            tmp_path / "b",
            stages,
            **asked | {"enroll_anonymized": tmp_path / "tested.csv"},
        )
    write_corpus(tmp_path / "few.csv", read_corpus(tmp_path / "own")[1:])
    whole = {"anonymized": voices / "tested-mcadams", "enroll_anonymized": tmp_path / "few.csv"}
    with pytest.raises(InputError, match="1 of 12 utterances that enrol are not in it"):
        evaluated(tmp_path, tmp_path / "c", stages, **asked | whole)


def kinds(shift: float, n: int = 40, d: int = 12, seed: int = 0) -> Embeddings:
    vectors = np.random.default_rng(seed).normal(size=(n, d))
    vectors[:, 0] += shift
    names = np.array([f"u{i}" for i in range(n)])
    return Embeddings(names, np.array([f"s{i // 4}" for i in range(n)]), vectors)


def test_the_side_of_speech_is_0_for_original_and_1_for_anonymized() -> None:
    original, anonymized = kinds(0.0), kinds(9.0, seed=1)
    assert side_of(original.vectors, anonymized.vectors, original.vectors).mean() == pytest.approx(
        0.0
    )
    assert side_of(
        original.vectors, anonymized.vectors, anonymized.vectors
    ).mean() == pytest.approx(1.0)
    assert told_apart(original, anonymized) > 0.9
    assert kind_control("x", original, anonymized, kinds(9.0, seed=2)).passed is True
    assert kind_control("x", original, anonymized, kinds(0.0, seed=2)).passed is False


def test_what_sounds_like_the_original_says_nothing_about_its_kind() -> None:
    """An anonymizer that does nothing: the control must not speak, whatever trains."""
    original = kinds(0.0)
    for alike in (original, kinds(0.01, seed=1)):
        assert kind_control("x", original, alike, kinds(9.0, seed=2)).passed is None
