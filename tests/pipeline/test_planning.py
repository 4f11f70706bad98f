"""A plan is right about what it tried: the work takes what the sample said, within its interval."""

import functools
import json
import time
from pathlib import Path

import numpy as np
import pytest

from voxrisk import shards
from voxrisk.corpus import Utterance, write_audio, write_corpus
from voxrisk.pipeline.course import COSTS, Step
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.pace import (
    BATCHES,
    CONFIDENCE,
    Pace,
    Trial,
    Try,
    measure_stage,
    pace_of,
    sample_of,
)
from voxrisk.pipeline.planning import DRIFT, Plan, plan_evaluation
from voxrisk.types import InputError


def corpus(count: int) -> list[Utterance]:
    seconds = np.random.default_rng(0).uniform(0.5, 1.5, count)
    return [
        Utterance(f"u{k:03d}", Path(f"{k}.wav"), f"s{k % 4}", duration=float(s))
        for k, s in enumerate(seconds)
    ]


@functools.cache
def load() -> None:
    time.sleep(0.4)


def sleepy(batch: list[Utterance], folder: Path) -> float:
    """A stage that takes a while to load and then a tenth of the speech, by the clock."""
    load()
    heard = sum(row.duration or 0.0 for row in batch)
    time.sleep(0.1 * heard)
    (folder / "made").write_bytes(bytes(round(1000 * heard)))
    return heard


def one(folder: Path, row: Utterance) -> float:
    place = folder / row.utterance
    place.mkdir(parents=True)
    return sleepy([row], place)


def test_the_real_work_takes_what_the_sample_said(tmp_path: Path) -> None:
    rows = corpus(60)
    with shards.kept_workers():
        pace = measure_stage(sleepy, rows, tmp_path / "tried", workers=2)
    assert 0.1 <= pace.each < 0.15
    assert pace.tries == 2 * (BATCHES - 1)
    assert pace.start == pytest.approx(0.4, abs=0.3)
    assert pace.disk == pytest.approx(1000, rel=0.2)
    speech = sum(row.duration or 0.0 for row in rows)
    plan = Plan((Step("anonymize", "sleepy", speech),), {("anonymize", "sleepy"): pace}, 2)
    with shards.kept_workers():
        warm = functools.partial(one, tmp_path / "warm")
        list(shards.run(warm, rows[:4], workers=2))  # workers are there, as inside a run
        began = time.monotonic()
        list(shards.run(functools.partial(one, tmp_path / "real"), rows, workers=2))
        took = time.monotonic() - began
    assert plan.total(2).low <= took <= plan.total(2).high
    assert plan.total(1).low > took  # and it is not right about everything


def trials(
    random: np.random.Generator, *, each: float, waiting: float, workers: int = 2
) -> list[Trial]:
    """Tries of a stage whose utterances differ by 30 %, on a machine where it must wait."""

    def one() -> Try:
        speech = random.uniform(2.0, 12.0)
        work = each * speech * random.lognormal(0.0, 0.3) / np.exp(0.3**2 / 2)
        return Try(speech, work * (1.0 + waiting), work * waiting, 1000.0 * speech)

    return [Trial(one(), [one() for _ in range(BATCHES - 1)], 0.5) for _ in range(workers)]


@pytest.mark.parametrize("workers", [2, 8])
def test_the_interval_of_a_pace_covers_the_truth_as_often_as_it_says(workers: int) -> None:
    """No drift in it here: the sample alone. So few tries are skewed, which costs some percent."""
    random = np.random.default_rng(0)
    drawn = [pace_of(trials(random, each=0.1, waiting=0.0, workers=workers)) for _ in range(600)]
    covered = np.mean([abs(pace.each - 0.1) <= pace.error for pace in drawn])
    assert CONFIDENCE - 0.05 <= covered <= CONFIDENCE + 0.05
    # And it is not that wide because it says nothing.
    assert np.median([pace.error / pace.each for pace in drawn]) < 0.4 * (2 / workers) ** 0.5


@pytest.mark.parametrize(("planned", "run"), [(0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (2.0, 0.7)])
def test_a_plan_made_on_a_busy_machine_holds_when_it_gets_quiet(planned: float, run: float) -> None:
    """Tries that waited for a core two thirds of the time; the run waits as long, less, or not."""
    random = np.random.default_rng(1)
    step = Step("anonymize", "x", 10_000.0)
    held = []
    for _ in range(200):
        pace = pace_of(trials(random, each=0.1, waiting=planned))
        span = Plan((step,), {("anonymize", "x"): pace}, 2).total(2)
        drift = random.uniform(1 - 0.8 * DRIFT, 1 + 0.8 * DRIFT)
        truth = 0.1 * (1.0 + run) * 10_000 / 2 * drift
        held.append(span.low <= truth <= span.high)
    assert np.mean(held) >= CONFIDENCE


def test_a_machine_that_gets_busier_breaks_the_plan_and_the_plan_says_so() -> None:
    random = np.random.default_rng(1)
    step = Step("anonymize", "x", 10_000.0)
    quiet, busy = (
        Plan((step,), {("anonymize", "x"): pace_of(trials(random, each=0.1, waiting=w))}, 2)
        for w in (0.0, 2.0)
    )
    assert quiet.total(2).high < busy.total(2).seconds
    assert "upper ends do not hold" in quiet.text()
    assert "67 % of the time workers waited for a core" in busy.text()
    assert json.loads(busy.to_json())["waiting_for_a_core"] == pytest.approx(2 / 3, abs=0.01)


def test_shards_of_vectors_keep_no_more_workers_busy_than_there_are() -> None:
    """An hour of speech is sixteen shards: of sixty-four workers sixteen have one each."""
    pace = Pace(0.0, 0.1, 0.0, 0.1, 0.5, 0.0, 0.0, 10)
    plan = Plan((Step("embed", "x", 3600.0),), {("embed", "x"): pace}, 2)
    assert plan.total(64).seconds == pytest.approx(22.5)
    assert plan.total(8).seconds == pytest.approx(45.0)
    assert plan.total(1).seconds == pytest.approx(360.0)


def test_more_workers_take_less_and_what_was_not_tried_is_less_certain() -> None:
    pace = Pace(2.0, 0.1, 0.01, 0.1, 0.5, 3e4, 3e3, 10)
    steps = (Step("anonymize", "mcadams", 1000.0), Step("train", "", 1000.0))
    plan = Plan(steps, {("anonymize", "mcadams"): pace}, 2)
    spans = [plan.total(n) for n in (1, 2, 8, 64)]
    assert [s.seconds for s in spans] == sorted((s.seconds for s in spans), reverse=True)
    assert all(s.low < s.seconds < s.high for s in spans)
    tried, guessed = (plan.step(step, 2) for step in steps)
    assert tried.high / tried.seconds < guessed.high / guessed.seconds
    assert plan.ratio == pytest.approx(0.1 / COSTS["anonymize", "mcadams"].each)
    assert plan.disk == pytest.approx((3e7, 2.7e7, 3.3e7))
    assert "0.5 GB for each worker (1.0 GB for 2, 4.0 GB for 8, 32.0 GB for 64)" in plan.text()
    assert "train  *" in plan.text()


def test_a_sample_is_of_different_utterances_where_there_are_enough() -> None:
    batches = [batch for part in sample_of(corpus(60), workers=2) for batch in part]
    names = [row.utterance for batch in batches for row in batch]
    assert len(batches) == 2 * BATCHES
    assert len(names) == 4 * BATCHES
    longest = max(corpus(60), key=lambda row: row.duration or 0.0).utterance
    assert all(part[0][0].utterance == longest for part in sample_of(corpus(60), workers=2))
    others = [name for name in names if name != longest]
    assert len(set(others)) == len(others) >= 4 * BATCHES - 3
    assert all(sample_of(corpus(3), workers=2))
    with pytest.raises(InputError, match="two utterances"):
        sample_of(corpus(1))


def test_every_stage_of_an_evaluation_that_hears_speech_is_tried(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(8):
        path = tmp_path / f"{k}.wav"
        write_audio(path, 0.1 * rng.standard_normal(8_000).astype(np.float32), rate=16_000)
        rows.append(Utterance(str(k), path, f"s{k % 2}", duration=0.5))
    write_corpus(tmp_path / "manifest.csv", rows)
    chosen = Evaluation(
        tmp_path / "manifest.csv", anonymizer="mcadams", encoder="longterm", effort="quick",
        utility=False, attackers=("ignorant",),
    )  # fmt: skip
    before = set(tmp_path.iterdir())
    plan = plan_evaluation(chosen)
    assert {("check", ""), ("anonymize", "mcadams"), ("embed", "longterm")} == set(plan.paces)
    assert all(pace.each > 0 and pace.gigabytes > 0 for pace in plan.paces.values())
    assert plan.paces["check", ""].disk >= 32_000  # decoded copies, 16 bits at 16 kHz
    assert {step.stage for step in plan.steps} > {"check", "anonymize", "embed"}
    told = json.loads(plan.to_json())
    assert told["total"]["8"]["low"] < told["total"]["8"]["high"]
    assert set(tmp_path.iterdir()) == before
