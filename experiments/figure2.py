"""Paper 3, Figure 2: the size of the recogniser, for both target selections.

python experiments/figure2.py --work figure2
"""

from paper3 import SELECTIONS, anonymized, attack, setup, spread


def main() -> None:
    """Train recognisers of several sizes, without the adversarial head, and print their EER."""
    given = setup(__doc__ or "")
    paper = given.recipe.size.channels >= 1024
    for size in ("vpc24", "spane") if paper else ("small", "vpc24"):
        for selection in SELECTIONS:
            train, test = anonymized(given, selection)
            label = f"figure2/{given.anonymizer}-{selection}-{size}"
            found = [attack(given, train, test, label, seed=s, size=size).eer for s in given.seeds]
            print(f"{size:6} {given.anonymizer}_{selection}  EER {spread(found)} %", flush=True)


if __name__ == "__main__":
    main()
