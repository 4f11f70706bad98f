"""Which length to slice at: the shortest whose loss of words is inside its interval.

Shorter slices protect better and cost more words. So the shortest length that costs nothing that
could be shown is recommended, and with it goes the attack that undoes it best: a length is only as
good as that attack is bad.
"""

from collections.abc import Sequence

from voxrisk.measure.resampling import MIN_SPEAKERS
from voxrisk.report import words
from voxrisk.slicing_results import (
    CLEAR,
    SLICED,
    WHOLE,
    Recommendation,
    SlicingResults,
    UtilityRow,
)
from voxrisk.types import Estimate

MOSTLY = 0.5  # of the next slices are found at once: then slices are as good as put together


def recommend(results: SlicingResults) -> Recommendation:
    """The recommended length and its reason, in words."""
    rows = [row for row in results.costs() if row.loss]
    if not rows:
        reason = (
            f"{_unknown(results)}, so no length can be recommended: the shorter, the better the "
            "protection. "
        )
        return Recommendation(duration=None, reason=reason + _undone_everywhere(results))
    free = [row for row in rows if row.loss and row.loss.interval and row.loss.interval.low <= 0.0]
    if not free:
        return Recommendation(duration=None, reason=_all_cost(rows) + _undone_everywhere(results))
    best = min(free, key=lambda row: row.duration or 0.0)
    assert best.duration is not None
    shorter = [r for r in rows if r.duration is not None and r.duration < best.duration]
    parts = [_cost(best), _shorter(shorter), _protection(results, best.duration)]
    undoer = results.undoer(best.duration)
    parts.append(_undone(results, best.duration))
    return Recommendation(
        duration=best.duration,
        reason=" ".join(part for part in parts if part),
        attacker=undoer.attacker if undoer else "",
    )


def _unknown(results: SlicingResults) -> str:
    """Why nobody knows what slices cost."""
    if results.costs():
        return f"What slices cost has no interval with fewer than {MIN_SPEAKERS} speakers"
    told = (str(row.wer.parameters.get("reason", "")) for row in results.utility)
    if reason := next(filter(None, told), ""):
        return f"What slices cost is not known ({reason})"
    return "What slices cost was not measured"


def _cost(row: UtilityRow) -> str:
    assert row.loss is not None
    assert row.loss.interval is not None
    who = "a recogniser trained on slices" if row.recogniser == "trained" else "a ready recogniser"
    return (
        f"At {row.duration:g} s {who} gets {words.percent(row.wer.value)} of the words wrong, "
        f"{words.points(row.loss.value)} percentage points against whole utterances (interval "
        f"{_span(row.loss)}): no loss could be shown, and up to "
        f"{words.points(row.loss.interval.high)} cannot be ruled out."
    )


def _shorter(rows: Sequence[UtilityRow]) -> str:
    if not rows:
        return "It is the shortest length that was tried."
    row = max(rows, key=lambda r: r.duration or 0.0)
    assert row.loss is not None
    return f"At {row.duration:g} s it is {words.points(row.loss.value)} ({_span(row.loss)})."


def _all_cost(rows: Sequence[UtilityRow]) -> str:
    least = min(rows, key=lambda r: r.loss.value if r.loss else 0.0)
    assert least.loss is not None
    return (
        f"Every length that was tried costs words; {least.duration:g} s costs least, "
        f"{words.points(least.loss.value)} ({_span(least.loss)}). Whoever accepts that may take "
        "it; no length is recommended. "
    )


def _protection(results: SlicingResults, duration: float) -> str:
    condition = results.conditions[-1] if results.conditions else CLEAR
    whole = results.strongest(condition, WHOLE, None)
    cut = results.strongest(condition, SLICED, duration)
    if whole is None or cut is None or "rocch_eer" not in whole.figures:
        return ""
    before, after = whole.figures["rocch_eer"], cut.figures["rocch_eer"]
    text = (
        f"The strongest attacker on {condition} speech errs in {words.percent(before.value)} of "
        f"decisions on whole utterances and in {words.percent(after.value)} on these slices (EER)"
    )
    if "d_sys" in whole.figures and "d_sys" in cut.figures:
        text += (
            f"; D_sys falls from {whole.figures['d_sys'].value:.2f} to "
            f"{cut.figures['d_sys'].value:.2f}"
        )
    return text + "."


def _undone(results: SlicingResults, duration: float) -> str:
    best = results.undoer(duration)
    if best is None:
        return "Whether they can be put together again was not tried."
    rank, first = best.figures["mean_rank"], best.figures.get("precision_at_1")
    found = f" and first in {words.percent(first.value)} of cases" if first else ""
    guess = f" (guessing {words.percent(first.chance)})" if first else ""
    said = (
        f"The attack that undoes them best, {best.attacker}, ranks the right next slice "
        f"{words.percent(rank.value)} down the list on average{found}{guess}."
    )
    if first and first.value >= MOSTLY:
        said += " So slices of this length do not hide what was said together."
    return said


def _undone_everywhere(results: SlicingResults) -> str:
    lengths = [d for d in results.durations if results.undoer(d)]
    if not lengths:
        return ""
    best = min(
        (row for d in lengths if (row := results.undoer(d)) is not None),
        key=lambda row: row.figures["mean_rank"].value,
    )
    return (
        f"Slices are undone best at {best.duration:g} s, by {best.attacker}: the right next slice "
        f"stands {words.percent(best.figures['mean_rank'].value)} down the list on average."
    )


def _span(loss: Estimate) -> str:
    if loss.interval is None:
        return "no interval"
    return f"{words.points(loss.interval.low)} to {words.points(loss.interval.high)}"
