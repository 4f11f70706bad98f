"""How the pages print figures: percent with one decimal, intervals, and chances as "1 in 3"."""

import math
import re

from markupsafe import Markup, escape

from voxrisk.measure import FIGURES
from voxrisk.measure.restoring import RESTORED_FIGURES
from voxrisk.report import style
from voxrisk.results import AttackResult, Criterion
from voxrisk.types import Estimate

LABELS = {name: figure.plain or figure.label for name, figure in FIGURES.items()}
LABELS |= {name: figure.label for name, figure in RESTORED_FIGURES.items()}
UNITS = {name: figure.unit for name, figure in FIGURES.items()}
UNITS |= dict.fromkeys(RESTORED_FIGURES, "rate")
UNITS |= dict.fromkeys(("wer_loss", "wer_mismatch"), "points")  # differences of word error rates
LEVELS = {
    "at chance": "Not shown to beat guessing",
    "above chance": "Better than guessing",
    "as original": "No protection shown",
    "not assessed": "Not assessed",
    "test failed": "The test failed",
}
# How far "better than guessing" goes: see Criterion.degree.
DEGREES = ("A little better than guessing", "Clearly better than guessing",
           "Close to no protection")  # fmt: skip
_FRACTIONS = ((1, 10), (1, 5), (1, 4), (3, 10), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (7, 10),
              (3, 4), (4, 5), (9, 10), (19, 20))  # fmt: skip


def percent(value: float, *, sign: bool = False) -> str:
    r"""A fraction as percent with one decimal; what would look like nothing keeps its first digit.

    >>> percent(0.4137), percent(-0.02, sign=True), percent(1 / 21920)
    ('41.4\xa0%', '−2.0\xa0%', '0.005\xa0%')
    """
    if 0.0 < abs(value) < 0.0005:
        shown = f"{100.0 * value:{'+' if sign else ''}.1g}"
        if "e" not in shown:
            return f"{shown}\u00a0%".replace("-", "−")
    return f"{_number(100.0 * value, 1, sign=sign)}\u00a0%"


def _number(value: float, decimals: int, *, sign: bool = False) -> str:
    """A number with a real minus and no "−0.0"."""
    rounded = round(value, decimals) + 0.0
    return f"{rounded:{'+' if sign and rounded else ''}.{decimals}f}".replace("-", "−")


def figure(name: str, value: float) -> str:
    r"""A value in the unit of its figure.

    >>> figure("d_ece", 0.12345), figure("g_vd", -1.25), figure("log10_l", 2.2)
    ('0.123\xa0bit', '−1.2\xa0dB', '2.20')
    """
    unit = UNITS.get(name, "")
    if unit == "rate":
        return percent(value)
    if unit == "points":
        return points(value)
    if unit == "signed rate":
        return percent(value, sign=True)
    if unit == "bit":
        return f"{_number(value, 3)}\u00a0bit"
    if unit == "dB":
        return f"{_number(value, 1, sign=True)}\u00a0dB"
    if unit == "of 5":
        return f"{_number(value, 2)} of 5"
    return _number(value, 2 if name != "d_sys" else 3)


def estimate(e: Estimate | None) -> str:
    """The value of an estimate in its unit."""
    return figure(e.name, e.value) if e else "–"


def interval(e: Estimate | None) -> str:
    """The interval of an estimate, or that there is none."""
    if e is None or e.interval is None:
        return "no interval"
    return bounds(e.name, e.interval.low, e.interval.high)


def bounds(name: str, low: float, high: float) -> str:
    r"""Both ends of an interval with one unit.

    >>> bounds("wer", 0.05, 0.123), bounds("g_vd", -2.0, 1.0)
    ('5.0 to 12.3\xa0%', '−2.0 to +1.0\xa0dB')
    """
    first, second = figure(name, low), figure(name, high)
    shared = ("\u00a0%", "\u00a0bit", "\u00a0dB", " of 5")
    unit = next((u for u in shared if first.endswith(u) and second.endswith(u)), "")
    return f"{first.removesuffix(unit)} to {second}"


def one_in(rate: float) -> str:
    """A probability in the words of a game of chance.

    >>> [one_in(p) for p in (0.0, 0.05, 0.34, 0.376, 0.98)]
    ['never', 'about 1 in 20', 'about 1 in 3', 'about 38 in 100', 'nearly always']
    """
    if rate in (0.0, 1.0):
        return "always" if rate else "never"
    if rate > 0.97:
        return "nearly always"
    if rate < 0.095:
        return f"about 1 in {round(1.0 / rate):,}"
    top, bottom = min(_FRACTIONS, key=lambda f: abs(f[0] / f[1] - rate))
    if abs(top / bottom - rate) > 0.02:
        top, bottom = round(100 * rate), 100
    return f"about {top} in {bottom}"


def both_names(attack: AttackResult) -> str:
    """Our name of an attacker beside VoicePrivacy's, because the two clash."""
    if attack.reference:
        return f"{attack.name} (speech not anonymized)"
    return f"{attack.name} (VoicePrivacy: {attack.voiceprivacy or 'no equivalent'})"


def look(attack: AttackResult, index: int) -> tuple[str, str]:
    """Colour and mark of an attacker; ``index`` decides for those that have none of their own."""
    return (
        attack.colour or style.colour(index + 4),
        attack.mark or style.MARKS[index % len(style.MARKS)],
    )


def count(number: float) -> str:
    """A whole number with thin separators, or up to two decimals."""
    whole = math.isclose(number, round(number))
    return f"{round(number):,}" if whole else f"{number:,.2f}"


def sentence(text: str) -> str:
    """Text that ends with a full stop.

    >>> sentence("no transcripts"), sentence("It ends.")
    ('no transcripts.', 'It ends.')
    """
    return text if not text or text[-1] in ".!?" else f"{text}."


def prior_odds(log_odds: float) -> str:
    """Odds that a person can say.

    >>> prior_odds(0.0), prior_odds(-4.6), prior_odds(2.3)
    ('even odds', '99 to 1 against', '10 to 1 on')
    """
    if abs(log_odds) < 0.05:
        return "even odds"
    odds = round(math.exp(abs(log_odds)), 1 if abs(log_odds) < 1.5 else None)
    return f"{odds:,} to 1 {'on' if log_odds > 0 else 'against'}"


def points(difference: float) -> str:
    """A difference of rates in percentage points.

    >>> points(0.123), points(-0.5)
    ('+12.3', '−50.0')
    """
    return _number(100.0 * difference, 1, sign=True)


def p_text(p: float) -> str:
    """A p-value as it is printed.

    >>> p_text(0.00002), p_text(0.0312)
    ('< 0.001', '0.031')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def badge(criterion: Criterion) -> tuple[int, str]:
    """The degree of a finding (1 to 3, or 0 where it has none) and its words."""
    degree = criterion.degree
    return degree, DEGREES[degree - 1] if degree else LEVELS[criterion.level]


OPTION = r"--[a-z]+(?:-[a-z]+)*"


def coded(text: str, pattern: str = OPTION) -> Markup:
    """Text in which options of commands are set as such, and stay whole at the end of a line.

    >>> coded("Add --train & more.")
    Markup('Add <code>--train</code> &amp; more.')
    """
    return Markup(re.sub(pattern, r"<code>\g<0></code>", str(escape(text))))


def step(text: str) -> Markup:
    """A step to take: what to do in bold, then the reason; options of commands stay whole.

    >>> step("Try more: add --train. It is worth it.")
    Markup('<b>Try more:</b> add <code>--train</code>. It is worth it.')
    """
    found = re.match(r"(.+?[.:])\s+(.*)", text, re.DOTALL)
    action, reason = (found[1], found[2]) if found else (text, "")
    return Markup(f"<b>{escape(action)}</b> {coded(reason, f'{OPTION}|voxrisk [a-z]+')}")
