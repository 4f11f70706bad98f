"""Paper 3, Table 1: EER, VER_S and VER_T of the baseline and of attackers that unlearn targets.

python experiments/table1.py --work table1 [--encoder]
python experiments/table1.py --work table1 --scale paper --train … --test … --targets …

At small scale the recogniser is a map behind ecapa-voxceleb, and E is swept; ``--encoder`` trains
whole encoders, as the paper does and as ``--scale paper`` always does.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from paper3 import SELECTIONS, Result, Setup, anonymized, attack, attack_behind, setup, spread

from voxrisk.attack.adapter import Unlearn
from voxrisk.attack.recipes import ADAPTED, AdapterRecipe
from voxrisk.corpus import Utterance

Run = Callable[[int], Result]


def main() -> None:
    """Train all attackers for both target selections and print the table."""
    given = setup(__doc__ or "")
    print("anonymizer  attacker             EER           VER_S         VER_T")
    for selection in SELECTIONS:
        train, test = anonymized(given, selection)
        rows = _encoders if given.encoder else _behind
        for name, run in rows(given, train, test, f"{given.anonymizer}-{selection}"):
            found = [run(seed) for seed in given.seeds]
            cells = [
                spread([getattr(r, figure) for r in found])
                for figure in ("eer", "ver_source", "ver_target")
            ]
            print(f"{given.anonymizer}_{selection:5} {name:20} " + "  ".join(cells), flush=True)


def _encoders(
    given: Setup, train: list[Utterance], test: list[Utterance], label: str
) -> Iterator[tuple[str, Run]]:
    for name, zero in (("baseline", None), ("adversarial", given.recipe.zero_epochs)):
        yield name, partial(_encoder, given, train, test, f"table1/{label}-{name}", zero)


def _encoder(
    given: Setup,
    train: list[Utterance],
    test: list[Utterance],
    folder: str,
    zero: int | None,
    seed: int,
) -> Result:
    return attack(given, train, test, folder, seed=seed, zero_epochs=zero)


def _behind(
    given: Setup, train: list[Utterance], test: list[Utterance], label: str
) -> Iterator[tuple[str, Run]]:
    for name, unlearn, recipe in ways():
        yield name, partial(_map, given, train, test, f"vectors/{label}", unlearn, recipe)


def ways() -> list[tuple[str, Unlearn | None, AdapterRecipe]]:
    """Name, way to unlearn and recipe of every map: the baseline, erasing, and a sweep of E."""
    found: list[tuple[str, Unlearn | None, AdapterRecipe]] = [
        ("baseline", None, ADAPTED),
        ("erase", "erase", ADAPTED),
    ]
    for against, strength in (("uniform", ADAPTED.strength), ("reversed", 1.0)):
        for zero in (0, 20, 40, 60):
            recipe = replace(ADAPTED, against=against, strength=strength, zero_epochs=zero)
            found.append((f"{against} E={zero}", "reverse", recipe))
    return found


def _map(
    given: Setup,
    train: list[Utterance],
    test: list[Utterance],
    folder: str,
    unlearn: Unlearn | None,
    recipe: AdapterRecipe,
    seed: int,
) -> Result:
    return attack_behind(given, train, test, folder, seed=seed, unlearn=unlearn, recipe=recipe)


if __name__ == "__main__":
    main()
