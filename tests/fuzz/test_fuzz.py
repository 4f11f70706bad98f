"""Damaged files of every form end in words, in the same data, or in what their text says."""

import tempfile
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from fuzz_campaign import BAD, GOOD, Bench, campaign, rounds, run_case
from fuzz_mutations import mutate
from fuzz_targets import OPEN, TARGETS, Target, plain

CASES = 25  # of each form
NAMES = [name for name in TARGETS if name not in OPEN]


def test_oracles_agree_with_the_readers_on_sound_files(tmp_path: Path) -> None:
    """Otherwise an oracle would explain nothing."""
    bench = Bench(tmp_path)
    asked = 0
    for target in TARGETS.values():
        home, _, _, read = bench.prepare(target)
        if target.oracle is not None:
            asked += 1
            assert plain(target.oracle(home), home) == read, target.name
    assert asked > 40


def test_damage_is_the_same_for_everyone_and_is_damage() -> None:
    for kind, data in (("text", b"enroll,trial,score\na,b,0.5\n"), ("binary", bytes(range(64)))):
        once = [mutate(data, Random(f"0/{i}"), kind) for i in range(200)]
        assert once == [mutate(data, Random(f"0/{i}"), kind) for i in range(200)]
        assert sum(damaged != data for damaged in once) > 150


def test_every_reader_survives_a_short_campaign() -> None:
    """``make fuzz`` runs the long one; the cases here are its first ones of each form."""
    turns = rounds(NAMES, CASES)
    found = list(campaign(range(len(turns)), seed=0, workers=2, targets=turns, timeout=60.0))
    bad = [outcome for outcome in found if outcome.kind in BAD]
    assert not bad, "\n\n".join(f"{b.target} {b.case}: {b.kind}\n{b.detail}" for b in bad[:5])
    kinds = Counter(outcome.kind for outcome in found)
    assert sum(kinds.values()) == len(turns)
    # Every good end is met: a fuzzer whose files are all refused, or all read, tests nothing.
    assert all(kinds[kind] > len(turns) // 50 for kind in GOOD), kinds
    assert {outcome.target for outcome in found} == set(NAMES)


def _broken(kind: str) -> Target:
    """A reader with a fault that the campaign must find."""

    def build(home: Path) -> Path:
        (home / "x.txt").write_text("0.25\n0.75\n")
        return home / "x.txt"

    def read(home: Path) -> object:
        text = (home / "x.txt").read_bytes()
        if text != b"0.25\n0.75\n":
            if kind == "hang":
                while True:
                    pass
            if kind == "crash":
                import os

                os.abort()
        if kind == "traceback":
            return [float(line) for line in text.splitlines()]
        return [line[:4] for line in text.decode("latin-1").split("\n") if kind != "same"]

    return Target(f"broken {kind}", "text", build, read, lambda home: ["never"])


@pytest.mark.parametrize("kind", ["traceback", "unexplained", "hang", "crash"])
def test_a_campaign_finds_the_faults_it_looks_for(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = _broken(kind)
    monkeypatch.setitem(TARGETS, target.name, target)
    found = campaign(range(4), seed=0, workers=1, targets=[target.name], timeout=1.5)
    assert kind in {outcome.kind for outcome in found}


def test_one_case_is_the_same_alone_and_in_a_campaign() -> None:
    name = "scores scores.csv"
    with tempfile.TemporaryDirectory() as folder:
        alone = run_case(Bench(Path(folder)), TARGETS[name], 7, 0)
    (again,) = campaign([7], seed=0, workers=1, targets=[name], timeout=60.0)
    assert alone == again
