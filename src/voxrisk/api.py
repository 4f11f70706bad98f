"""The calls that ``import voxrisk as vr`` offers beside plain metrics: files in, records out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.results import Results
from voxrisk.types import Embeddings, InputError

if TYPE_CHECKING:
    from voxrisk.measure import Population

Corpus = Path | str | Sequence[Utterance]


def anonymize(
    corpus: Corpus, out: Path | str, anonymizer: str = "mcadams", **options: Any
) -> list[Utterance]:
    """Protect speech and return the rows of the protected corpus.

    Args:
        corpus: A corpus (folder or manifest), or its utterances.
        out: Folder for the protected speech; a run that was stopped goes on there.
        anonymizer: ``mcadams``, ``world``, ``knn``, ``private-knn``, ``pool``, or
            ``package.module:function``.
        **options: As of :func:`voxrisk.protect.run.anonymize`: ``options={"part": "light"}``,
            ``targets``, ``select``, ``per``, ``seed``, ``workers``, ``force``.
    """
    from voxrisk.protect.run import anonymize as run

    if "targets" in options and options["targets"] is not None:
        options["targets"] = _rows(options["targets"])
    return run(_rows(corpus), out, anonymizer, **options)


def embed(
    corpus: Corpus, out: Path | str, encoder: str = "ecapa-voxceleb", **options: Any
) -> Embeddings:
    """Speaker embeddings of a corpus, written to the NPZ file ``out`` and returned.

    Args:
        corpus: A corpus (folder or manifest), or its utterances.
        out: The NPZ file; what is finished is used again.
        encoder: A ready encoder, or the folder of a trained attacker.
        **options: As of :func:`voxrisk.attack.embed.embed_corpus`: ``device``, ``workers``.
    """
    from voxrisk.attack.embed import embed_corpus

    return embed_corpus(_rows(corpus), encoder, out, **options)


def measure_crowd(
    enrolled: Embeddings,
    tested: Embeddings,
    *,
    L: Sequence[int] = (1,),
    N: Sequence[int] | None = None,
    **options: Any,
) -> "Population":
    """Singling Out, Linkability and EER in a crowd: ``found.linkability[3, 100]``.

    Args:
        enrolled: What the attacker holds: embeddings of known people.
        tested: The published speech under attack, of some of them.
        L: Utterances of each voice.
        N: Sizes of the crowd; None: 20, 100, 200, 400 … and everybody.
        **options: Other choices of :class:`voxrisk.measure.Protocol`: ``resamples``, ``seed`` …
    """
    from voxrisk.measure import Protocol
    from voxrisk.measure import measure_crowd as measure
    from voxrisk.shards import spread

    protocol = Protocol(lengths=tuple(L), sizes=None if N is None else tuple(N), **options)
    return measure(enrolled=enrolled, tested=tested, protocol=protocol, spread=spread)


def compare(runs: Mapping[str, Any] | Sequence[Any], path: Path | str) -> None:
    """Write a page that compares several evaluations.

    Args:
        runs: Results, or folders of runs; a mapping gives them names.
        path: The HTML file.
    """
    from voxrisk.report.compare import write_compare

    named = isinstance(runs, Mapping)
    held = list(runs.values() if isinstance(runs, Mapping) else runs)
    found = [r if isinstance(r, Results) else Results.read(r) for r in held]
    write_compare(found, Path(path), names=list(runs) if named else None)


def write_report(run: Results | Path | str, path: Path | str) -> None:
    """Write the report of one evaluation as one HTML file."""
    from voxrisk.report.html import write_report as write

    write(run if isinstance(run, Results) else Results.read(run), Path(path))


def _rows(corpus: Corpus) -> list[Utterance]:
    if isinstance(corpus, str | Path):
        return read_corpus(corpus)
    rows = list(corpus)
    if not all(isinstance(row, Utterance) for row in rows):
        raise InputError(
            "a corpus is a folder, a manifest, or a list of voxrisk.Utterance; "
            f"this is a list of {type(rows[0]).__name__}"
        )
    return rows
