"""The trials that come with the speech are those that are measured, set by set and pooled."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from short_speech import cut_short
from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.corpus.trials import Lists, pair_lists
from voxrisk.files.scores import read_trials
from voxrisk.pipeline.entered import evaluate_entry
from voxrisk.pipeline.entry import Entry
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation, read_yaml, shared_yaml, write_yaml
from voxrisk.pipeline.official import listed_sides, lists_of, role_sides, side_notices
from voxrisk.protect.run import anonymize
from voxrisk.results import Results
from voxrisk.types import InputError

SETS = {"libri_dev_f", "libri_dev_m", "libri_test_f", "libri_test_m"}


def kaldi(folder: Path, rows: Sequence[Utterance], **files: Iterable[str]) -> None:
    """A Kaldi directory, as the challenges have them."""
    folder.mkdir(parents=True)
    genders = {row.speaker: row.gender for row in rows}
    tables = {
        "wav.scp": [f"{row.utterance} {row.path.absolute()}" for row in rows],
        "utt2spk": [f"{row.utterance} {row.speaker}" for row in rows],
        "spk2gender": [f"{s} {g}" for s, g in genders.items()],
        "text": [f"{row.utterance} {row.text}" for row in rows],
        **files,
    }
    for name, lines in tables.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def layout(
    folder: Path, rows: Sequence[Utterance], *, suffix: str = "", lists: bool = True
) -> Path:
    """VoicePrivacy's directories, of which the lists do not use all."""
    people = list(dict.fromkeys(row.speaker for row in rows))
    for part, mine in (("libri_dev", people[::3] + people[1::3]), ("libri_test", people[2::3])):
        own = [row for row in rows if row.speaker in mine]
        enroll = [r for r in own if r.session == "1"]
        trial = [r for r in own if r.session == "2"]
        # Somebody is tried whom nobody enrols, as in VoicePrivacy's LibriSpeech sets.
        stranger = mine[0] if part == "libri_dev" else ""
        enroll = [row for row in enroll if row.speaker != stranger]
        ids = [r.utterance for r in enroll if not r.utterance.endswith("-1-01")]
        kaldi(folder / f"{part}_enrolls{suffix}", enroll, **({"enrolls": ids} if lists else {}))
        for gender in "fm":
            tried = [row for row in trial if row.gender == gender]
            models = sorted({row.speaker for row in enroll if row.gender == gender})
            pairs = [
                f"{model} {row.utterance} {'target' if model == row.speaker else 'nontarget'}"
                for row in tried
                for model in models
                if not (model == models[0] and row.utterance.endswith("1"))
            ]
            kaldi(folder / f"{part}_trials_{gender}{suffix}", tried,
                  **({"trials": pairs} if lists else {}))  # fmt: skip
    return folder


pytestmark = pytest.mark.usefixtures("plain_encoder")


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Original and anonymized directories side by side, as VoicePrivacy 2024 leaves them."""
    folder = tmp_path_factory.mktemp("vpc")
    spoken = cut_short(make_demo(folder / "demo", voices=12, sentences=2), folder / "short")
    rows = [replace(row, gender="fm"[i // 4 % 2]) for i, row in enumerate(spoken)]
    write_corpus(folder / "demo" / "manifest.csv", rows)
    made = anonymize(rows, folder / "mcadams", "mcadams")
    paths = {row.utterance: row.path for row in made}
    layout(folder / "data", rows)
    hidden = [replace(row, path=paths[row.utterance]) for row in rows]
    layout(folder / "data", hidden, suffix="_mcadams", lists=False)
    return folder


@pytest.fixture(scope="module")
def run(challenge: Path, plain_encoder: str) -> tuple[Path, Results]:
    data = challenge / "data"
    asked = Evaluation(
        data, anonymized=data / "*_mcadams", effort="quick", encoder="plain", utility=False
    )
    return challenge / "run", evaluate_speech(asked, challenge / "run")


def called(*command: object) -> None:
    told = CliRunner().invoke(app, [str(word) for word in command])
    assert told.exit_code == 0, (told.output, told.exception)


def test_a_voiceprivacy_folder_gives_the_eer_of_embed_score_and_measure(
    challenge: Path, run: tuple[Path, Results]
) -> None:
    """To 1e-9, for each set and each pair of original and anonymized speech."""
    data, steps = challenge / "data", challenge / "steps"
    _, results = run
    for kind, corpus in (("original", data), ("anonymized", data / "*_mcadams")):
        called("embed", corpus, "--encoder", "plain", "--workers", 1, "-o", steps / f"{kind}.npz")
    for name, enrolled, tried in (
        ("original", "original", "original"),
        ("ignorant", "original", "anonymized"),
        ("lazy-informed", "anonymized", "anonymized"),
    ):
        sets = {found.name: found for found in results.attackers[name].sets}
        assert set(sets) == SETS
        for which in SETS:
            part, _, gender = which.rpartition("_")
            trials = data / f"{part}_trials_{gender}"
            scores = steps / f"{name}-{which}.csv"
            called(
                "score", steps / f"{tried}.npz", "--enroll-embeddings", steps / f"{enrolled}.npz",
                "--trials", trials, "--enroll", data / f"{part}_enrolls", "-o", scores,
            )  # fmt: skip
            out = steps / f"measured-{name}-{which}"
            called("measure", scores, "--trials", trials, "--resamples", 0, "-o", out)
            measured = Results.read(out).attacks[0].figures
            for figure in ("rocch_eer", "interpolated_eer", "cllr_min", "d_ece"):
                if figure in measured:
                    assert sets[which].figures[figure].value == pytest.approx(
                        measured[figure].value, abs=1e-9
                    )
            assert "rocch_eer" in measured
    assert len({round(s.figures["rocch_eer"].value, 6) for s in results.attacks[0].sets}) > 1


def test_every_listed_trial_is_scored_and_no_other(
    challenge: Path, run: tuple[Path, Results]
) -> None:
    folder, results = run
    listed = {
        (enroll, trial)
        for path in sorted((challenge / "data").glob("*/trials"))
        for enroll, trial, _ in read_trials(path).pairs()
    }
    written = {pair[:2] for pair in read_trials(folder / "scores" / "trials.csv").pairs()}
    assert written == listed
    sizes = results.attacks[0].sizes
    assert sizes["target"] + sizes["nontarget"] == len(listed)
    assert results.methods.enrolment.startswith(
        "enrolment and trials by the official lists, 4 sets pooled; "
    )
    codes = {n.code for n in results.notices}
    assert "no_sessions" in codes
    assert "crowd_failed" not in codes
    assert results.attacks[0].crowd
    assert not codes & {"roles_ignored", "trials_left_out", "sessions_shared"}
    held = json.loads((folder / "scores" / "sides.json").read_text())
    assert held["source"] == "lists"
    assert not [u for u in held["enroll"] if u.endswith("-1-01")]


def test_the_files_of_a_run_give_its_figures_again(
    challenge: Path, run: tuple[Path, Results], tmp_path: Path
) -> None:
    """Entry at any point: its embeddings and lists, or its scores, instead of its speech."""
    folder, results = run
    vectors, scores = folder / "embeddings", folder / "scores"
    names = ("ignorant", "lazy-informed")
    lists = pair_lists([scores / "enroll.csv"], [scores / "trials.csv"])
    embedded = evaluate_entry(
        Entry(
            embeddings={name: vectors / f"{name}-trial.npz" for name in names},
            enroll_embeddings={name: vectors / f"{name}-enroll.npz" for name in names},
            sets=lists, effort="quick",
        ),
        tmp_path / "embedded",
    )  # fmt: skip
    scored = evaluate_entry(
        Entry(
            scores={name: (scores / f"scores-{name}.csv",) for name in names},
            original_scores=(scores / "scores-original.csv",),
            sets=lists, effort="quick",
        ),
        tmp_path / "scored",
    )  # fmt: skip
    for name in names:
        whole, part = results.attackers[name], embedded.attackers[name]
        assert {k: e.value for k, e in part.figures.items()} == pytest.approx(
            {k: e.value for k, e in whole.figures.items()}, abs=1e-9
        )
        assert [(e.name, e.length, e.size) for e in part.crowd] == [
            (e.name, e.length, e.size) for e in whole.crowd
        ]
        assert [e.value for e in part.crowd] == pytest.approx([e.value for e in whole.crowd])
        assert scored.attackers[name].eer.value == pytest.approx(whole.eer.value, abs=1e-9)


def test_the_split_of_our_own_can_be_asked_for(challenge: Path, tmp_path: Path) -> None:
    """And says that it neglects the roles; the trials are others."""
    data = challenge / "data"
    asked = Evaluation(
        data, anonymized=data / "*_mcadams", effort="quick", encoder="plain", utility=False,
        split="own", attackers=("ignorant",),
    )  # fmt: skip
    results = evaluate_speech(asked, tmp_path / "run", stages=challenge / "run" / "stages")
    assert "roles_ignored" in {n.code for n in results.notices}
    assert results.methods.enrolment.startswith("split by utterance")
    assert results.attacks[0].sets == ()


@pytest.fixture(scope="module")
def rows(challenge: Path) -> list[Utterance]:
    return read_corpus(challenge / "demo")


def known(rows: Sequence[Utterance]) -> dict[str, str]:
    return {row.utterance: row.speaker for row in rows}


def written(folder: Path, rows: Sequence[Utterance], **change: Any) -> Lists:
    """Lists in CSV of the first four speakers: session 1 enrols under names of its own."""
    folder.mkdir(exist_ok=True)
    people = sorted({row.speaker for row in rows})[:4]
    own = {s: [r.utterance for r in rows if (r.speaker, r.session) == (s, "1")] for s in people}
    tried = [row for row in rows if row.speaker in people and row.session == "2"]
    lines = [
        f"model-{s},{row.utterance},{'target' if s == row.speaker else 'nontarget'}"
        for row in tried
        for s in people
    ]
    models = [f"model-{s},{' '.join(utts)}" for s, utts in own.items()]
    lines = change.get("trials", lambda x: x)(lines)
    models = change.get("enroll", lambda x: x)(models)
    (folder / "trials.csv").write_text("enroll,trial,label\n" + "\n".join(lines) + "\n")
    (folder / "enroll.csv").write_text("model,utts\n" + "\n".join(models) + "\n")
    return Lists(folder / "trials.csv", folder / "enroll.csv")


def test_an_enrolment_of_a_speaker_has_the_name_of_the_speaker(
    rows: list[Utterance], tmp_path: Path
) -> None:
    sides = listed_sides(rows, [written(tmp_path, rows)], known=known(rows))
    people = sorted({row.speaker for row in rows})
    assert sorted(sides.models) == people[:4]
    assert (sides.by, sides.source, sides.sets) == ("session", "lists", {})
    assert set(sides.left_out) == set(people[4:])
    assert not sides.same_gender
    assert sum(t.target for t in sides.listed) == len(sides.trial)


def test_without_an_enrolment_list_what_is_not_tried_enrols(
    rows: list[Utterance], tmp_path: Path
) -> None:
    """A name is a speaker, whose other utterances enrol, or an utterance."""
    people = sorted({row.speaker for row in rows})[:2]
    tried = [row for row in rows if row.speaker in people and row.session == "2"]
    lines = [
        f"{s} {row.utterance} {'target' if s == row.speaker else 'nontarget'}"
        for row in tried
        for s in people
    ]
    (tmp_path / "trials").write_text("\n".join(lines) + "\n")
    sides = listed_sides(rows, [Lists(tmp_path / "trials")], known=known(rows))
    assert {u for own in sides.models.values() for u in own} == {
        row.utterance for row in rows if row.speaker in people and row.session == "1"
    }
    first, second = (next(r for r in rows if r.speaker == s).utterance for s in people)
    pairs = [f"{first} {tried[0].utterance} ", f"{second} {tried[0].utterance} "]
    same = [known(rows)[first] == tried[0].speaker, known(rows)[second] == tried[0].speaker]
    lines = [p + ("target" if t else "nontarget") for p, t in zip(pairs, same, strict=True)]
    (tmp_path / "pairs").write_text("\n".join(lines) + "\n")
    sides = listed_sides(rows, [Lists(tmp_path / "pairs")], known=known(rows))
    assert sorted(sides.models.values()) == sorted([(first,), (second,)])


def test_two_enrolments_of_one_speaker_stay_two(rows: list[Utterance], tmp_path: Path) -> None:
    def cut(models: list[str]) -> list[str]:
        name, _, first = models[0].partition(",")
        one, *others = first.split()
        return [f"{name},{one}", f"other,{' '.join(others)}", *models[1:]]

    def more(lines: list[str]) -> list[str]:
        head = lines[0].split(",")[0]
        return lines + [line.replace(head, "other") for line in lines if line.startswith(head)]

    sides = listed_sides(
        rows, [written(tmp_path, rows, enroll=cut, trials=more)], known=known(rows)
    )
    assert len(sides.models) == 5
    owners = [s for name, s in sides.owners.items() if name in ("other", next(iter(sides.models)))]
    assert len(set(owners)) == 1
    scored = sides.scored([0.0] * len(sides.listed))
    assert scored.is_target.tolist() == [t.target for t in sides.listed]


def test_a_trial_of_two_sets_counts_once_in_the_pool(rows: list[Utterance], tmp_path: Path) -> None:
    """VCTK's trials_f_all contains trials_f_common."""
    whole = written(tmp_path / "all", rows)
    part = written(tmp_path / "common", rows, trials=lambda lines: lines[:8])
    named = [replace(whole, name="f_all"), replace(part, name="f_common")]
    sides = listed_sides(rows, named, known=known(rows))
    assert len(sides.sets["f_common"]) == 8
    assert len(sides.listed) == len(sides.sets["f_all"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trials": lambda x: [*x, "model-nobody,a,target"]}, "'model-nobody' is not in"),
        ({"trials": lambda x: [*x, f"{x[0].split(',')[0]},u9,target"]}, "'u9' is not in the orig"),
        (
            {"trials": lambda x: [line.replace(",target", ",nontarget") for line in x]},
            r"trials\.csv line \d+: labelled nontarget, but",
        ),
        ({"enroll": lambda x: [f"{x[0]} {x[1].split()[-1]}", *x[1:]]}, "speech of 2 speakers"),
        ({"trials": lambda x: [line for line in x if ",non" not in line]}, "no trial of two sp"),
    ],
)
def test_lists_that_cannot_be_right(
    change: dict[str, Any], words: str, rows: list[Utterance], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        listed_sides(rows, [written(tmp_path, rows, **change)], known=known(rows))


def test_an_utterance_that_meets_itself_is_refused(rows: list[Utterance], tmp_path: Path) -> None:
    first = min(r.speaker for r in rows)
    enrolled = next(r.utterance for r in rows if (r.speaker, r.session) == (first, "1"))
    lists = written(tmp_path, rows, trials=lambda x: [*x, f"model-{first},{enrolled},target"])
    with pytest.raises(InputError, match="an enrolment that holds it"):
        listed_sides(rows, [lists], known=known(rows))


def test_trials_of_files_that_cannot_be_used_are_counted(
    rows: list[Utterance], tmp_path: Path
) -> None:
    lists = written(tmp_path, rows)
    broken = next(t for _, t, _ in read_trials(lists.trials).pairs())
    sides = listed_sides(
        [row for row in rows if row.utterance != broken], [lists], known=known(rows)
    )
    (said,) = [n for n in sides.notices if n.code == "trials_left_out"]
    assert said.facts == {"count": 4, "total": 4 * len({t.trial for t in sides.listed}) + 4}


def test_a_session_on_both_sides_of_a_list_is_told(rows: list[Utterance], tmp_path: Path) -> None:
    alike = [replace(row, session="one") for row in rows]
    sides = listed_sides(alike, [written(tmp_path, rows)], known=known(rows))
    assert sides.by == "utterance"
    assert [n.code for n in side_notices(sides, alike)][:2] == [
        "sessions_shared",
        "official_enrolment",
    ]
    assert "no_sessions" not in {n.code for n in side_notices(sides, alike)}


@pytest.mark.parametrize("column", ["role", "split"])
def test_roles_of_a_table_are_honoured(column: str, rows: list[Utterance]) -> None:
    """One row of session 2 has no role: it is on neither side."""
    kinds = {"1": "trial", "2": "enroll"}
    cast = [replace(row, extra={column: kinds[str(row.session)]}) for row in rows]
    cast[-1] = replace(cast[-1], extra={})
    sides = role_sides(cast)
    assert set(sides.enroll) == {r.utterance for r in cast if r.extra.get(column) == "enroll"}
    assert set(sides.trial) == {r.utterance for r in cast if r.extra.get(column) == "trial"}
    assert (sides.by, sides.source) == ("session", "roles")


def test_a_split_into_train_and_test_is_no_role(rows: list[Utterance], tmp_path: Path) -> None:
    """Nobody enrols there; the split is ours, and that the column was neglected is said."""
    kinds = {"1": "train", "2": "test"}
    few = sorted({row.speaker for row in rows})[:3]
    cast = [
        replace(row, extra={"split": kinds[str(row.session)]}) for row in rows if row.speaker in few
    ]
    write_corpus(tmp_path / "cast.csv", cast)
    results = evaluate_speech(
        Evaluation(
            tmp_path / "cast.csv",
            anonymizer="mcadams",
            effort="quick",
            encoder="plain",
            utility=False,
        ),
        tmp_path / "run",
    )
    assert "roles_ignored" in {n.code for n in results.notices}


def test_lists_beside_a_manifest_belong_to_it_alone(rows: list[Utterance], tmp_path: Path) -> None:
    lists = written(tmp_path, rows)
    write_corpus(tmp_path / "manifest.csv", rows)
    write_corpus(tmp_path / "few.csv", rows[:4])
    assert lists_of(tmp_path) == (lists,) == lists_of(tmp_path / "manifest.csv")
    assert lists_of(tmp_path / "few.csv") == ()


def test_sets_survive_the_yaml_and_their_paths_are_hidden(tmp_path: Path) -> None:
    sets = pair_lists([tmp_path / "enrolls"], [f"f={tmp_path}/secret_f", f"m={tmp_path}/secret_m"])
    asked = Evaluation(tmp_path / "speech", anonymizer="mcadams", sets=sets)
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "evaluation.yaml"
    file.write_text(write_yaml(asked, file.parent))
    assert str(tmp_path) not in file.read_text()
    again = read_yaml(file)
    assert [(s.name, s.trials.resolve().name) for s in again.sets] == [
        ("f", "secret_f"), ("m", "secret_m"),
    ]  # fmt: skip
    assert "secret" not in shared_yaml(asked)
    assert "TRIALS" in shared_yaml(asked)
    with pytest.raises(InputError, match="leave out --trials"):
        replace(asked, split="own")
    with pytest.raises(InputError, match="official or own"):
        replace(asked, split="ours")


@pytest.mark.parametrize(
    ("enroll", "trials", "words"),
    [
        (["e"], [], "needs its trial list"),
        (["a", "b"], ["x", "y", "z"], "2 enrolment lists for 3"),
        (["f=a", "m=b"], ["m=x", "f=y"], "is called 'f' by its enrolment list and 'm'"),
    ],
)
def test_lists_that_do_not_go_together(enroll: list[str], trials: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        pair_lists(enroll, trials)


def test_the_official_lists_of_librispeech_eval(shared: Path, tmp_path: Path) -> None:
    """None of the official trials enrols (issue 13: 44 of 89 did), and all are scored."""
    corpus = shared / "librispeech_eval"
    rows = read_corpus(corpus)
    sides = listed_sides(rows, lists_of(corpus), known=known(rows))
    official = {(e, t) for e, t, _ in read_trials(corpus / "trials.csv").pairs()}
    assert {(t.enroll, t.trial) for t in sides.listed} == official
    assert set(sides.enroll) == {r.utterance for r in rows if r.extra["role"] == "enroll"}
    assert (sides.by, sides.same_gender) == ("session", True)
    assert set(sides.enroll) == set(role_sides(rows).enroll)


def test_librispeech_eval_gives_the_eer_of_embed_score_and_measure(
    shared: Path, tmp_path: Path
) -> None:
    """Four of its speakers, its own enroll.csv and trials.csv, found beside the manifest."""
    source = shared / "librispeech_eval"
    rows = read_corpus(source)
    people = list(dict.fromkeys(row.speaker for row in rows if row.gender == "f"))[:4]
    enroll = [row for row in rows if row.speaker in people and row.extra["role"] == "enroll"]
    trial = [row for s in people for row in rows
             if row.speaker == s and row.extra["role"] == "trial"][::4]  # fmt: skip
    tried = {row.utterance for row in trial}
    corpus = tmp_path / "corpus"
    write_corpus(corpus / "manifest.csv", [*enroll, *trial])
    for name, kept in (
        ("enroll.csv", lambda cells: cells[0] in people),
        ("trials.csv", lambda cells: cells[0] in people and cells[1] in tried),
    ):
        header, *lines = (source / name).read_text().splitlines()
        lines = [line for line in lines if kept(line.split(","))]
        (corpus / name).write_text("\n".join([header, *lines]) + "\n")
    results = evaluate_speech(
        Evaluation(
            corpus, anonymizer="mcadams", effort="quick", encoder="plain", utility=False,
            attackers=("lazy-informed",),
        ),
        tmp_path / "run",
    )  # fmt: skip
    (made,) = (tmp_path / "run" / "stages").glob("anonymize-*/speech")
    called("embed", made, "--encoder", "plain", "--workers", 1, "-o", tmp_path / "a.npz")
    lists = "--trials", corpus / "trials.csv", "--enroll", corpus / "enroll.csv"
    called("score", tmp_path / "a.npz", *lists, "-o", tmp_path / "scores.csv")
    called("measure", tmp_path / "scores.csv", *lists[:2], "--resamples", 0, "-o", tmp_path / "m")
    measured = Results.read(tmp_path / "m").attacks[0].eer.value
    assert results.attackers["lazy-informed"].eer.value == pytest.approx(measured, abs=1e-9)
    assert "official lists" in results.methods.enrolment
