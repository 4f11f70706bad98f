"""The two sides of a split share nothing they must not share."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from voxrisk.cli import app
from voxrisk.corpus import Utterance, read_corpus
from voxrisk.corpus.splits import a_and_b, by_session, by_speaker, refuse_leak
from voxrisk.corpus.trials import (
    Trial,
    make_trials,
    read_enrolments,
    write_enrolments,
    write_trials,
)
from voxrisk.files.scores import read_trials
from voxrisk.types import InputError


def row(speaker: str, session: str | None, number: int, gender: str | None = None) -> Utterance:
    name = f"{speaker}-{session}-{number}"
    return Utterance(name, Path(name), speaker, gender=gender, session=session)


@st.composite
def corpora(draw: st.DrawFn) -> list[Utterance]:
    """Two to six speakers with one to four sessions of one to three utterances."""
    known = draw(st.booleans())
    rows = []
    for speaker in range(draw(st.integers(2, 6))):
        for session in range(draw(st.integers(1, 4))):
            count = draw(st.integers(1, 3))
            rows += [row(f"s{speaker}", f"{session}", i, "fm"[speaker % 2]) for i in range(count)]
    if not known:
        rows = [Utterance(r.utterance, r.path, r.speaker, r.gender) for r in rows]
    return rows


def able(rows: list[Utterance]) -> bool:
    """Whether a speaker has two sessions (or, where none is known, two utterances)."""
    units = {(r.speaker, r.session or r.utterance) for r in rows}
    return len(units) > len({r.speaker for r in rows})


@given(corpora(), st.integers(0, 9), st.floats(0.1, 0.9))
def test_session_split_never_shares_a_session(
    rows: list[Utterance], seed: int, share: float
) -> None:
    if not able(rows):
        with pytest.raises(InputError, match="no speaker has two"):
            by_session(rows, share=share, seed=seed)
        return
    split = by_session(rows, share=share, seed=seed)
    enroll, trial = split.sides["enroll"], split.sides["trial"]
    assert split.by == ("session" if rows[0].session else "utterance")
    assert not {r.utterance for r in enroll} & {r.utterance for r in trial}
    if split.by == "session":
        assert not {(r.speaker, r.session) for r in enroll} & {
            (r.speaker, r.session) for r in trial
        }
    assert {r.speaker for r in enroll} == {r.speaker for r in trial}
    left = [r for r in rows if r.speaker in split.left_out]
    assert len(enroll) + len(trial) + len(left) == len(rows)
    assert split == by_session(rows, share=share, seed=seed)


@given(corpora(), st.integers(0, 9))
def test_every_speaker_of_b_is_in_a_with_other_speech(rows: list[Utterance], seed: int) -> None:
    if not able(rows):
        with pytest.raises(InputError, match="set B cannot have"):
            a_and_b(rows, seed=seed)
        return
    split = a_and_b(rows, seed=seed)
    a, b = split.sides["A"], split.sides["B"]
    assert {r.speaker for r in b} <= {r.speaker for r in a}
    assert {r.speaker for r in a} == {r.speaker for r in rows}
    assert sorted(r.utterance for r in (*a, *b)) == sorted(r.utterance for r in rows)


@given(corpora(), st.integers(0, 9))
def test_speaker_split_never_shares_a_speaker(rows: list[Utterance], seed: int) -> None:
    if len({r.speaker for r in rows}) == 2:  # one of each gender
        with pytest.raises(InputError, match="2 speakers are too few"):
            by_speaker(rows, share=0.5, seed=seed)
        return
    split = by_speaker(rows, share=0.5, seed=seed)
    train, evaluation = split.sides["train"], split.sides["evaluation"]
    assert train
    assert evaluation
    assert not {r.speaker for r in train} & {r.speaker for r in evaluation}
    assert len(train) + len(evaluation) == len(rows)


@pytest.mark.parametrize("by", ["utterance", "session", "speaker"])
def test_a_leak_is_an_error(by: str) -> None:
    one, same_session, other_session = row("s", "1", 1), row("s", "1", 2), row("s", "2", 1)
    leaks = {"utterance": one, "session": same_session, "speaker": other_session}
    with pytest.raises(InputError, match=f"leak: .* share their {by}"):
        refuse_leak([one], [leaks[by]], by=by)
    refuse_leak([one], [row("t", "1", 1)], by=by)


def test_the_same_audio_under_another_id_is_a_leak() -> None:
    one = row("s", "1", 1)
    with pytest.raises(InputError, match="leak"):
        refuse_leak([one], [Utterance("other", one.path, "t")], by="utterance")


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0])
def test_an_impossible_share_is_refused(share: float) -> None:
    rows = [row(s, session, 1) for s in "abc" for session in "12"]
    for split in (by_session, a_and_b, by_speaker):
        with pytest.raises(InputError, match="it must lie between 0 and 1"):
            split(rows, share=share)


def test_half_known_sessions_are_an_error() -> None:
    with pytest.raises(InputError, match="'b-None-1' has no session but others have"):
        by_session([row("a", "1", 1), row("b", None, 1)])


def test_trials_compare_all_pairs_and_know_their_labels(tmp_path: Path) -> None:
    enroll = [row(s, "1", i, g) for s, g in [("a", "f"), ("b", "f"), ("c", "m")] for i in (1, 2)]
    trial = [row(s, "2", 1, g) for s, g in [("a", "f"), ("b", "f"), ("c", "m")]]
    trials = list(make_trials(enroll, trial))
    assert {(t.enroll, t.trial) for t in trials} == set(
        product("abc", [r.utterance for r in trial])
    )
    assert all(t.target == (t.enroll == t.trial[0]) for t in trials)
    same = list(make_trials(enroll, trial, same_gender=True))
    assert len(same) == 5
    assert len(list(make_trials(enroll, trial, nontargets=1))) == 6
    assert write_trials(tmp_path / "trials.csv", trials) == 9
    assert [Trial(*pair) for pair in read_trials(tmp_path / "trials.csv").pairs()] == trials
    write_enrolments(tmp_path / "enroll.csv", enroll)
    assert read_enrolments(tmp_path / "enroll.csv")["b"] == ["b-1-1", "b-1-2"]
    with pytest.raises(InputError, match="need the gender of"):
        list(make_trials([row("a", "1", 1)], trial, same_gender=True))


def test_the_shared_trial_list_has_a_target_for_each_utterance(shared: Path) -> None:
    real = read_trials(shared / "librispeech_eval" / "trials.csv")
    assert sum(target for *_, target in real.pairs()) == 558


def test_split_command_writes_manifests_and_trials(tmp_path: Path, shared: Path) -> None:
    corpus = str(shared / "librispeech_eval")
    out = tmp_path / "split"
    result = CliRunner().invoke(app, ["corpus", "split", corpus, "-o", str(out), "--same-gender"])
    assert result.exit_code == 0, result.output
    enroll, trial = read_corpus(out / "enroll"), read_corpus(out / "trial")
    refuse_leak(enroll, trial, by="session")
    assert len(enroll) + len(trial) == 783
    genders = {r.speaker: r.gender for r in enroll} | {r.utterance: r.gender for r in trial}
    pairs = read_trials(out / "trials.csv").pairs()
    assert all(genders[enroll] == genders[trial] for enroll, trial, _ in pairs)
    again = CliRunner().invoke(app, ["corpus", "split", corpus, "-o", str(out)])
    assert isinstance(again.exception, InputError)
    assert "--force" in str(again.exception)
