"""Linkage across sessions: its laws, and an oracle that counts one recording at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxrisk.measure import session_linkage
from voxrisk.types import Embeddings, InputError


def people(
    signal: float, *, speakers: int = 12, sessions: int = 3, each: int = 4, seed: int = 0
) -> tuple[Embeddings, list[str]]:
    """Utterances with so much of the person in them, the same in every session."""
    random = np.random.default_rng(seed)
    voice = random.standard_normal((speakers, 16))
    who = np.repeat(np.arange(speakers), sessions * each)
    day = np.tile(np.repeat(np.arange(sessions), each), speakers)
    vectors = signal * voice[who] + random.standard_normal((who.size, 16))
    names = np.array([f"u{i}" for i in range(who.size)])
    speaker = np.array([f"s{i:02d}" for i in who])
    return Embeddings(names, speaker, vectors.astype(np.float32)), [f"d{d}" for d in day]


def by_hand(embeddings: Embeddings, session: list[str]) -> list[tuple[str, float]]:
    """Each recording with a person in another session, and whether it finds that person."""
    unit = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    held: dict[tuple[str, str], list[np.ndarray]] = {}
    for who, day, vector in zip(embeddings.speaker, session, unit, strict=True):
        held.setdefault((str(who), day), []).append(vector)
    mean = {key: np.sum(v, axis=0) / np.linalg.norm(np.sum(v, axis=0)) for key, v in held.items()}
    found = []
    for (who, day), one in mean.items():
        others = {k: float(one @ v) for k, v in mean.items() if k[1] != day}
        if any(k[0] == who for k in others):
            found.append((who, float(max(others, key=lambda k: others[k])[0] == who)))
    return found


@given(st.floats(0.2, 2.0), st.integers(0, 20))
def test_it_is_what_counting_by_hand_gives(signal: float, seed: int) -> None:
    given_speech, session = people(signal, speakers=7, seed=seed)
    found = session_linkage(given_speech, session, resamples=0)
    counted = by_hand(given_speech, session)
    assert found["recordings_linked"].value == pytest.approx(np.mean([hit for _, hit in counted]))
    whole = {who: min(h for w, h in counted if w == who) for who, _ in counted}
    assert found["people_linked"].value == pytest.approx(np.mean(list(whole.values())))


def test_a_voice_that_stays_is_linked_and_noise_is_guessed() -> None:
    clear = session_linkage(*people(5.0))["recordings_linked"]
    assert clear.value == 1.0
    assert clear.interval.low < 1.0  # 12 people cannot show more
    values = [session_linkage(*people(0.0, seed=s), resamples=0) for s in range(40)]
    for name in ("recordings_linked", "people_linked"):
        mean = np.mean([v[name].value for v in values])
        assert mean == pytest.approx(values[0][name].chance, abs=0.03)
    assert values[0]["recordings_linked"].chance == pytest.approx(2 / 24)
    assert values[0]["people_linked"].chance == pytest.approx((2 / 24) ** 3)


def test_a_session_alone_links_nobody() -> None:
    """What all recordings of a day share must not help: only other days are candidates."""
    speech, session = people(0.0, sessions=2)
    room = {"d0": np.full(16, 9.0), "d1": np.full(16, -9.0)}
    moved = speech.vectors + np.stack([room[day] for day in session]).astype(np.float32)
    found = session_linkage(
        Embeddings(speech.utterance, speech.speaker, moved), session, resamples=0
    )
    assert found["recordings_linked"].value < 0.4


def test_the_order_of_utterances_and_the_names_of_people_change_nothing() -> None:
    speech, session = people(0.8)
    before = session_linkage(speech, session, resamples=0)
    order = np.random.default_rng(3).permutation(len(session))
    renamed = np.array([f"p{99 - int(s[1:])}" for s in speech.speaker])
    after = session_linkage(
        Embeddings(speech.utterance[order], renamed[order], speech.vectors[order]),
        [session[i] for i in order],
        resamples=0,
    )
    for name, one in before.items():
        assert after[name].value == pytest.approx(one.value)


def test_exchanged_names_leave_chance() -> None:
    speech, session = people(2.0, speakers=30)
    kept = session_linkage(speech, session, resamples=0)["recordings_linked"]
    # In one session everybody has the name of the next person.
    wrong = np.array(
        [f"s{(int(s[1:]) + (d == 'd0') + 7 * (d == 'd1')) % 30:02d}"
         for s, d in zip(speech.speaker, session, strict=True)]
    )  # fmt: skip
    lost = session_linkage(
        Embeddings(speech.utterance, wrong, speech.vectors), session, resamples=0
    )["recordings_linked"]
    assert kept.value > 0.95
    assert lost.value < 0.05


def test_people_with_one_session_are_candidates_and_not_counted() -> None:
    speech, session = people(0.5, speakers=6, sessions=2)
    once = np.flatnonzero((speech.speaker != "s05") | (np.array(session) == "d0"))
    part = Embeddings(speech.utterance[once], speech.speaker[once], speech.vectors[once])
    found = session_linkage(part, [session[i] for i in once], resamples=0)["recordings_linked"]
    assert found.n["speaker"] == 5
    assert found.n["recording"] == 10
    assert found.chance == pytest.approx((5 / 5 + 5 / 6) / 10)


def test_what_cannot_be_linked_says_why() -> None:
    speech, session = people(1.0, sessions=1)
    with pytest.raises(InputError, match="0 of them in two sessions"):
        session_linkage(speech, session)
    with pytest.raises(InputError, match="give one for each"):
        session_linkage(speech, session[:-1])
