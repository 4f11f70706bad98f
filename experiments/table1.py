"""Paper 3, Table 1: EER, VER_S and VER_T of the baseline and of the adversarial attacker.

python experiments/table1.py --work table1 [--scale paper --train … --test … --targets …]
"""

from paper3 import SELECTIONS, anonymized, attack, setup, spread


def main() -> None:
    """Train both attackers for both target selections and print the table."""
    given = setup(__doc__ or "")
    print("anonymizer  attacker     EER           VER_S         VER_T")
    for selection in SELECTIONS:
        train, test = anonymized(given, selection)
        for name, zero in (("baseline", None), ("adversarial", given.recipe.zero_epochs)):
            label = f"table1/{given.anonymizer}-{selection}-{name}"
            found = [
                attack(given, train, test, label, seed=seed, zero_epochs=zero)
                for seed in given.seeds
            ]
            cells = [
                spread([getattr(r, figure) for r in found])
                for figure in ("eer", "ver_source", "ver_target")
            ]
            print(f"{given.anonymizer}_{selection:5} {name:12} " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
