"""The demo: the whole chain, from speech to two reports and their comparison.

Half of the speakers are evaluated, the others are the target voices and the training speech of the
attackers. The voices are synthetic unless the user brings a corpus.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxrisk.corpus import read_corpus, write_corpus
from voxrisk.corpus.splits import by_speaker
from voxrisk.files.results import read_times
from voxrisk.pipeline.evaluate import evaluate_speech
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.report.compare import write_compare
from voxrisk.report.html import write_report
from voxrisk.results import Results
from voxrisk.shards import kept_workers

VOICES = 24  # of the 28 there are: all of it takes under four minutes on two cores
SYSTEMS: dict[str, dict[str, Any]] = {"mcadams": {}, "knn": {"part": "light"}}


@kept_workers()
def run_demo(
    folder: Path, *, real: Path | None = None, utility: bool = True, tell: Callable[[str], None]
) -> Path:
    """Evaluate two anonymizers and compare them; returns the page to look at.

    Args:
        folder: Gets a run for each anonymizer, and ``compare.html``.
        real: A corpus of real speech instead of the synthetic voices.
        utility: Whether to measure what the speech is still good for, most of the time it takes.
        tell: Told what happens.
    """
    voices = real.name if real else "synthetic voices"
    if real is None:
        from voxrisk.corpus.demo import demo_corpus

        real = demo_corpus(engine="recorded", voices=VOICES)
    corpus = read_corpus(real)
    people = len({row.speaker for row in corpus})
    tell(f"{people} speakers ({voices}), {len(corpus)} utterances.")
    split = by_speaker(corpus, share=0.5)
    for side, rows in split.sides.items():
        write_corpus(folder / f"{side}.csv", rows)
    runs = []
    for name, options in SYSTEMS.items():
        chosen = Evaluation(
            folder / "evaluation.csv",
            anonymizer=name,
            options=options,
            train=folder / "train.csv",
            effort="quick",
            title=f"{name} on {voices}",
            with_audio=True,
            utility=utility,
        )
        more = "".join(f" --set {key}={value}" for key, value in options.items())
        quiet = "" if utility else " --no-utility"
        tell(
            f"\n$ voxrisk evaluate --original {chosen.original} --anonymizer {name}{more} \\\n"
            f"    --train {chosen.train} --effort quick --with-audio{quiet} -o {folder / name}"
        )
        results = evaluate_speech(chosen, folder / name, stages=folder / "stages", force=True)
        write_report(results, folder / name / "report.html", run=read_times(folder / name))
        tell(_said(results))
        runs.append(results)
    page = folder / "compare.html"
    write_compare(runs, page, names=list(SYSTEMS))
    tell(f"\n$ voxrisk compare {' '.join(str(folder / name) for name in SYSTEMS)} -o {page}")
    return page


def _said(results: Results) -> str:
    """The verdict and each attacker's error, as lines of text."""
    lines = [results.verdict.headline] if results.verdict else []
    lines += [f"  {a.name:<23} EER {100 * a.eer.value:4.1f} %" for a in results.attacks]
    return "\n".join(lines)
