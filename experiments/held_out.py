"""Table 1 on training speakers that were held out: what the constants of the adapter rest on.

python experiments/held_out.py --work table1

Two folds by speaker. The map learns from one half of the speakers and is tried on the other. VER_T
is measured twice: by the head that was trained along, on held-out utterances of the same speakers,
and by a new head, the nearest class mean by cosine, on the held-out speakers.
"""

from dataclasses import replace

import numpy as np
from paper3 import SELECTIONS, Setup, anonymized_part, ready_vectors, setup, spread
from table1 import ways

from voxrisk.attack.adapter import Unlearn, fit_adapter
from voxrisk.attack.recipes import AdapterRecipe
from voxrisk.attack.soundness import Map, Rows, cross_validated
from voxrisk.measure.eer import rocch_eer
from voxrisk.types import Embeddings


def main() -> None:
    """Print a row for each way to unlearn, for both selections."""
    given = setup(__doc__ or "")
    print(
        "anonymizer  attacker       untrained     EER           VER_S         VER_T      new head"
    )
    for selection in SELECTIONS:
        rows = anonymized_part(given, selection, "train")
        label = f"{given.anonymizer}-{selection}"
        held = ready_vectors(given, rows, given.work / "vectors" / label / "train.npz")
        targets = np.array([row.extra["target"] for row in rows])
        for name, unlearn, recipe in ways():
            cells = _measure(given, held, targets, unlearn, recipe)
            words = "  ".join(spread(cell.tolist()) for cell in cells)
            print(f"{given.anonymizer}_{selection:5} {name:14} {words}", flush=True)


def _measure(
    given: Setup,
    held: Embeddings,
    targets: np.ndarray,
    unlearn: Unlearn | None,
    recipe: AdapterRecipe,
) -> np.ndarray:
    """EER untrained and trained, VER_S, VER_T and VER_T of a new head, ``(5, seeds)``."""
    found = []
    for seed in given.seeds:
        errors: list[tuple[float, float, float]] = []

        def fit(
            all_of: Embeddings,
            rows: Rows,
            seed: int = seed,
            errors: list[tuple[float, float, float]] = errors,
        ) -> Map:
            part = replace(
                all_of,
                utterance=all_of.utterance[rows],
                speaker=all_of.speaker[rows],
                vectors=all_of.vectors[rows],
            )
            own = targets[rows].tolist()
            made = fit_adapter(part, recipe, targets=own, unlearn=unlearn, seed=seed)
            last = made.epochs[-1]
            others = np.setdiff1d(np.arange(len(targets)), rows)
            mapped = made.adapter.apply(all_of.vectors)
            guess = _new_head(mapped[rows], targets[rows], mapped[others])
            wrong = float((guess != targets[others]).mean())
            errors.append((last.ver_source, last.ver_target or 0.0, wrong))
            return made.adapter.apply

        trained, plain = cross_validated(held, fit, seed=seed)
        eers = [rocch_eer(t.target, t.nontarget) for t in (plain, trained)]
        found.append([*eers, *np.mean(errors, axis=0)])
    return np.array(found).T


def _new_head(known: np.ndarray, label: np.ndarray, tried: np.ndarray) -> np.ndarray:
    names = np.unique(label)
    centre = known.mean(axis=0)
    means = np.stack([known[label == name].mean(axis=0) for name in names]) - centre
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return names[np.argmax((tried - centre) @ means.T, axis=1)]


if __name__ == "__main__":
    main()
