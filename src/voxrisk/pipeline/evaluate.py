"""``voxrisk evaluate``: from speech to ``results.json`` and ``report.html``."""

import json
import platform
import time
from pathlib import Path
from typing import Any

from voxrisk.files.atomic import write_text
from voxrisk.pipeline.attacks import (
    Attack,
    Sides,
    allowed_attackers,
    make_sides,
    run_attack,
    write_sides,
)
from voxrisk.pipeline.evaluation import Evaluation
from voxrisk.pipeline.results import assemble
from voxrisk.pipeline.speech import Warned, prepare_speech
from voxrisk.pipeline.stages import Stages
from voxrisk.pipeline.verdict import general_warnings, share_targets


def evaluate_speech(
    chosen: Evaluation, folder: Path, *, stages: Path | None = None
) -> dict[str, Any]:
    """Run the whole chain and write everything into ``folder``; returns the results.

    What is finished stays in ``stages`` (by default ``folder/stages``) and is used again.
    """
    started = time.time()
    folder.mkdir(parents=True, exist_ok=True)
    kept = Stages(stages or folder / "stages")
    kept.folder.mkdir(parents=True, exist_ok=True)
    speech = prepare_speech(chosen, kept)
    warnings = list(speech.warnings)
    people = {row.speaker for row in speech.original}
    attacks: list[Attack] = []
    sides: Sides | None = None
    if len(people) < 2:
        warnings.append(
            Warned("serious", "There is only one speaker, so there is nobody to be confused with: "
                   "the risk of re-identification cannot be measured.")
        )  # fmt: skip
    else:
        sides = make_sides(speech.original, seed=chosen.seed)
        write_sides(folder / "scores", sides)
        for speaker, why in sides.left_out.items():
            warnings.append(Warned("note", f"Speaker {speaker} takes no part: {why}."))
        for knowledge in allowed_attackers(chosen, speech):
            attack = run_attack(chosen, knowledge, speech, sides, kept, folder / "scores")
            attacks.append(attack)
            warnings += [w for w in attack.warnings if w not in warnings]
    synthetic = next(
        (r.extra["synthetic"] for r in speech.original if r.extra.get("synthetic")), None
    )
    warnings = general_warnings(
        len(people),
        attacks,
        sides.by if sides else "session",
        synthetic,
        shared_targets=share_targets(speech.anonymized),
        drawn_apart=chosen.draws_apart,
    ) + warnings  # fmt: skip
    results = assemble(chosen, speech, sides, attacks, warnings, kept, synthetic)
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / "results.json", text + "\n")
    write_text(folder / "evaluation.yaml", results["methods"]["evaluation_yaml"])
    facts = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(started)),
        "seconds": round(time.time() - started, 1),
        "stages_run": kept.seconds,
        "stages_reused": kept.reused,
        **kept.notes,
        "machine": platform.platform(),
    }
    write_text(folder / "run.json", json.dumps(facts, indent=1) + "\n")
    return results
