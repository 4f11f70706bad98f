"""Paper 3, Figure 4: the source error for every E, the epochs before the gradient is reversed.

python experiments/figure4.py --work figure4
"""

from paper3 import SELECTIONS, anonymized, attack, setup, spread


def main() -> None:
    """Train with every E; the last is the baseline."""
    given = setup(__doc__ or "")
    for selection in SELECTIONS:
        train, test = anonymized(given, selection)
        for zero in range(given.recipe.epochs + 1):
            label = f"figure4/{given.anonymizer}-{selection}-E{zero}"
            found = [
                attack(given, train, test, label, seed=s, zero_epochs=zero) for s in given.seeds
            ]
            source = spread([r.ver_source for r in found])
            target = spread([r.ver_target for r in found])
            print(
                f"{given.anonymizer}_{selection} E={zero:2}  VER_S {source}  VER_T {target}",
                flush=True,
            )


if __name__ == "__main__":
    main()
