"""Voxrisk: how well can a speaker still be recognised after anonymization, and what is left to use?

    import voxrisk as vr
    vr.eer(target, nontarget)
    run = vr.evaluate("speech", anonymizer="knn", out="run")

The names of ``__all__`` are the public interface; ``docs/api.md`` says what is promised. Each is
imported when it is first touched, so ``import voxrisk`` costs nothing. The rooms behind them follow
the data: corpus → protect → attack → measure → report.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

ROOMS = ("attack", "corpus", "files", "measure", "protect", "report", "types", "utility")
_WHERE = {
    "Embeddings": "types:Embeddings",
    "Estimate": "types:Estimate",
    "InputError": "types:InputError",
    "Results": "results:Results",
    "Trials": "measure:Trials",
    "anonymize": "api:anonymize",
    "compare": "api:compare",
    "d_sys": "measure:d_sys",
    "eer": "measure:rocch_eer",
    "embed": "api:embed",
    "evaluate": "pipeline.evaluate:evaluate",
    "measure_crowd": "api:measure_crowd",
    "measure_scores": "measure:measure_scores",
    "read_corpus": "corpus:read_corpus",
    "read_embeddings": "files.embeddings:read_embeddings",
    "write_report": "api:write_report",
    "zebra": "measure.zebra:zebra",
}
__all__ = [
    "Embeddings",
    "Estimate",
    "InputError",
    "Results",
    "Trials",
    "__version__",
    "anonymize",
    "compare",
    "d_sys",
    "eer",
    "embed",
    "evaluate",
    "measure_crowd",
    "measure_scores",
    "read_corpus",
    "read_embeddings",
    "write_report",
    "zebra",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        module, _, attribute = _WHERE[name].partition(":")
        return getattr(importlib.import_module(f"voxrisk.{module}"), attribute)
    if name in ROOMS:
        return importlib.import_module(f"voxrisk.{name}")
    raise AttributeError(f"module 'voxrisk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *ROOMS]
