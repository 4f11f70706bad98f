"""The picture of a population study: rows are metrics, columns conversation lengths.

Every panel reads the same way: the higher the curve, the greater the risk. Each attacker has a
colour and a mark; the band is the confidence interval; grey is what an attacker gets who learns
nothing.
"""

from collections.abc import Mapping, Sequence

from voxrisk import knowledge
from voxrisk.files.published import PublishedCurve
from voxrisk.measure.population import Population
from voxrisk.report import charts, crowd_charts, style, words
from voxrisk.report.charts import Series
from voxrisk.report.figure import Entry, Figure, arrange
from voxrisk.types import Estimate

# The names of the paper clash with those of the VoicePrivacy Challenge: print both. Only "ignorant"
# may be either: paper 1's is lazy-informed here and in VoicePrivacy.
ATTACKERS = {
    k.name: f"{k.name} (VoicePrivacy: {k.voiceprivacy})"
    for k in knowledge.ATTACKERS.values()
    if k.name != "ignorant"
} | {"original": "original speech, not protected"}


def population_figure(
    populations: Sequence[Population], *, under: Sequence[PublishedCurve] = ()
) -> Figure:
    """Draw all attackers together; ``under`` is laid below as thin dashed lines.

    Metrics that were not measured (a ready score matrix has no Singling Out) are left out.
    """
    measured = {e.name for p in populations for e in p.estimates}
    shown = [row for row in crowd_charts.CROWD_ROWS if row[0] in measured]
    lengths = sorted({int(e.parameters["L"]) for p in populations for e in p.estimates})
    sizes = [int(e.parameters["N"]) for p in populations for e in p.estimates]
    sizes += [n for curve in under if curve.length in lengths for n in curve.size]
    looks = style.looks(p.attacker for p in populations)
    rows = crowd_charts.crowd_panels(
        shown,
        lengths,
        crowd_charts.sizes_axis(sizes),
        lambda metric, length: [_curve(p, metric, length, looks) for p in populations],
        lambda metric, length: _under(under, metric, length, looks),
    )
    return arrange(
        "Risk of being recognised: the higher the curve, the greater the risk",
        _said(populations, max(lengths)),
        rows,
        names=[(title, meaning) for _, title, meaning in shown],
        legend=_legend(populations, under, looks, [metric for metric, _, _ in shown]),
    )


def _curve(
    p: Population, metric: str, length: int, looks: Mapping[str, tuple[str, str]]
) -> tuple[Series, list[Estimate]]:
    series = Series(p.attacker, ATTACKERS.get(p.attacker, p.attacker), *looks[p.attacker])
    return series, p.curve(metric, length)


def _under(
    under: Sequence[PublishedCurve], metric: str, length: int, looks: Mapping[str, tuple[str, str]]
) -> list[tuple[list[tuple[float, float]], str]]:
    return [
        (
            [
                (n, crowd_charts.risk(metric, v))
                for n, v in zip(curve.size, curve.value, strict=True)
            ],
            looks.get(curve.attacker, (style.MUTED, ""))[0],
        )
        for curve in under
        if (curve.metric, curve.length) == (metric, length)
    ]


def _said(populations: Sequence[Population], length: int) -> str:
    """The figures among the most people, from the longest conversations."""
    sentences = ["Share of successes against the number of people N."]
    for p in populations:
        found = []
        for metric, title, _ in crowd_charts.CROWD_ROWS:
            if points := p.curve(metric, length):
                last = points[-1]
                value = words.percent(crowd_charts.risk(metric, last.value))
                found.append(f"{title} {value} among {last.parameters['N']:,}")
        if found:
            sentences.append(f"{p.attacker}, L = {length}: {', '.join(found)}.")
    return " ".join(sentences)


def _legend(
    populations: Sequence[Population],
    under: Sequence[PublishedCurve],
    looks: Mapping[str, tuple[str, str]],
    metrics: Sequence[str],
) -> list[Entry]:
    entries = [
        Entry(words=ATTACKERS.get(p.attacker, p.attacker), colour=looks[p.attacker][0],
              shape=looks[p.attacker][1])
        for p in populations
    ]  # fmt: skip
    spans = [e.interval for p in populations for e in p.estimates if e.interval]
    if spans:
        text = f"{100 * spans[0].confidence:g} % interval, speakers resampled"
        entries.append(Entry(words=text, colour=style.MUTED, area=0.25))
    if under:
        entries.append(Entry(words="published curve, same colour", colour=style.MUTED, width=1.1,
                             dash=crowd_charts.UNDER_DASH))  # fmt: skip
    entries.append(Entry(words="chance: the voice tells nothing", colour=style.NONTARGET, width=1.4,
                         dash=charts.CHANCE_DASH))  # fmt: skip
    if "singling_out" in metrics:
        entries.append(Entry(words="chance as the paper gives it, 37 %", colour=style.NONTARGET,
                             width=0.8))  # fmt: skip
    return entries
