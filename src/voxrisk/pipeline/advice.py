"""What to do next: at most three steps that follow from the figures, each with its reason.

Each rule looks at the finished results and gives a notice or None; the first that apply are taken,
so the order is the order of weight. A new step is a rule here and a row of ``NOTICES``.
"""

from collections.abc import Callable

from voxrisk.notices import Notice, notice
from voxrisk.results import AttackResult, Criterion, Results

MOST = 3
MANY = 30  # speakers below whom a crowd says little about a larger one
EXPOSED = 0.5  # linked in half of the trials or more
FAR = 2.0  # times: how much more than the typical person the exposed are linked
UNDERSTOOD = "transcripts"  # the control that says nothing about attackers
LOST = 0.1  # share of words that protection may cost before another anonymizer is worth a look


def next_steps(results: Results) -> tuple[Notice, ...]:
    """The steps of most weight, three at the most."""
    found = [step for rule in RULES if (step := rule(results)) is not None]
    return tuple(found[:MOST])


def _mend(r: Results) -> Notice | None:
    failed = [
        c for c in r.controls if c.passed is False and not c.attacker and c.code != UNDERSTOOD
    ]
    return (
        notice("next_mend", question=failed[0].question, found=failed[0].found) if failed else None
    )


def _train(r: Results) -> Notice | None:
    attacks = [a for a in r.attacks if not a.reference]
    if not attacks or any(a.training for a in attacks):
        return None
    return notice("next_train")


def _retrain(r: Results) -> Notice | None:
    unsound = [c.attacker for c in r.controls if c.passed is False and c.attacker]
    return notice("next_retrain", attacker=unsound[0]) if unsound else None


def _replace(r: Results) -> Notice | None:
    same = [c for c in _criteria(r) if c.level == "as original"]
    return notice("next_replace", criterion=same[0].name) if same else None


def _shorten(r: Results) -> Notice | None:
    """Less speech of a person, where a single utterance gives measurably less away."""
    strongest = _strongest(r)
    if strongest is None:
        return None
    lengths = sorted({e.length for e in strongest.crowd if e.name == "linkability"})
    if len(lengths) < 2:
        return None
    few, many = (strongest.curve("linkability", n)[-1] for n in (lengths[0], lengths[-1]))
    if few.interval is None or many.interval is None or few.interval.high >= many.interval.low:
        return None
    return notice(
        "next_shorten",
        few=few.value, many=many.value, length=lengths[-1], speakers=many.size,
        less="one utterance" if lengths[0] == 1 else f"{lengths[0]} utterances",
    )  # fmt: skip


def _spare(r: Results) -> Notice | None:
    """People who stand out: an average hides them."""
    strongest = _strongest(r)
    if strongest is None:
        return None
    linked = sorted(p.linkability for p in strongest.speakers if p.linkability is not None)
    exposed = [x for x in linked if x >= EXPOSED]
    typical = linked[len(linked) // 2] if linked else 0.0
    if not exposed or 2 * len(exposed) > len(linked) or exposed[0] < FAR * typical:
        return None
    return notice(
        "next_spare", count=len(exposed), total=len(linked), share=EXPOSED, typical=typical
    )


def _words(r: Results) -> Notice | None:
    if r.utility is None or "wer" in r.utility.untrusted:
        return None
    before, after = r.utility.get("wer", "original"), r.utility.get("wer", "anonymized")
    if before is None or after is None or after.value - before.value < LOST:
        return None
    return notice("next_words", before=before.value, after=after.value)


def _language(r: Results) -> Notice | None:
    """A recogniser that does not know the speech voids what is said of words, and nothing else."""
    failed = [c for c in r.controls if c.passed is False and c.code == UNDERSTOOD]
    return notice("next_language", found=failed[0].found) if failed else None


def _transcripts(r: Results) -> Notice | None:
    told = [c for c in r.controls if c.code == "words" and c.passed is False]
    return notice("next_transcripts", found=told[0].found) if told else None


def _more_people(r: Results) -> Notice | None:
    if r.corpus is None or r.corpus.speakers >= MANY:
        return None
    return notice("next_people", speakers=r.corpus.speakers, many=MANY)


def _stronger(r: Results) -> Notice | None:
    found = _criteria(r)
    if not found or any(c.level != "at chance" for c in found):
        return None
    return notice("next_stronger")


def _better(r: Results) -> Notice | None:
    above = [c for c in _criteria(r) if c.level == "above chance"]
    return notice("next_compare", criterion=above[0].name) if above else None


RULES: tuple[Callable[[Results], Notice | None], ...] = (
    _mend,
    _language,
    _train,
    _retrain,
    _replace,
    _transcripts,
    _shorten,
    _spare,
    _words,
    _more_people,
    _better,
    _stronger,
)


def _criteria(r: Results) -> list[Criterion]:
    return [c for c in r.verdict.criteria if c.assessed] if r.verdict else []


def _strongest(r: Results) -> AttackResult | None:
    """The attacker behind the finding on linkability, if it beats guessing."""
    for c in _criteria(r):
        if c.name == "linkability" and c.level in ("above chance", "as original"):
            return r.attackers.get(c.attacker or "")
    return None
