"""Paper 3, Figure 3: what both heads of the baseline know after each epoch.

python experiments/figure3.py --work figure3
"""

from paper3 import SELECTIONS, anonymized, attack, setup, spread


def main() -> None:
    """Train the baseline and print VER_S and VER_T of every epoch."""
    given = setup(__doc__ or "")
    for selection in SELECTIONS:
        train, test = anonymized(given, selection)
        label = f"figure3/{given.anonymizer}-{selection}"
        found = [attack(given, train, test, label, seed=seed).epochs for seed in given.seeds]
        print(f"{given.anonymizer}_{selection}: epoch, VER_S, VER_T (%)")
        for epochs in zip(*found, strict=True):
            source = spread([e.ver_source for e in epochs])
            target = spread([e.ver_target for e in epochs])
            print(f"{epochs[0].epoch:3}  {source}  {target}", flush=True)


if __name__ == "__main__":
    main()
