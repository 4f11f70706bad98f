"""Whole utterances in a study of slicing against ``evaluate``: the same trials, the same figures.

    voxrisk slicing CORPUS --anonymizer mcadams --train OTHERS --duration 60 --no-text --no-speech \
        --no-utility --stages work -o whole
    voxrisk evaluate --original CORPUS --anonymizer mcadams --train OTHERS --no-utility \
        --attacker lazy-informed --attacker informed --stages work -o evaluated
    python experiments/unsliced.py whole evaluated

No slice is 60 s long, so the first command tries whole utterances alone. Ends with 1 where a value
or an end of an interval differs by more than 1e-9, or where nothing could be compared.
"""

import sys

from voxrisk.results import Results
from voxrisk.slicing_results import WHOLE, SlicingResults
from voxrisk.types import Estimate

MOST = 1e-9


def numbers(e: Estimate) -> list[float]:
    """A value, and both ends of its interval."""
    return [e.value, *((e.interval.low, e.interval.high) if e.interval else ())]


def main(study: str, run: str) -> int:
    """Print every figure of both; 0 where all are equal."""
    evaluated = Results.read(run).attackers
    differences = []
    for row in SlicingResults.read(study).privacy:
        if row.cut != WHOLE:
            continue
        theirs = evaluated[row.attacker]
        linked = max(theirs.curve("linkability", 1), key=lambda e: e.size)
        for name, mine in row.figures.items():
            other = linked if name == "linkability" else theirs.figures[name]
            pairs = zip(numbers(mine), numbers(other), strict=True)
            differences.append(max(abs(a - b) for a, b in pairs))
            print(f"{row.condition}, {row.attacker}, {name}: {mine.value:.12f} {other.value:.12f}")
    if not differences:
        print("no whole utterances to compare")
        return 1
    print(f"{len(differences)} figures with their intervals, largest difference {max(differences)}")
    return int(max(differences) > MOST)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
