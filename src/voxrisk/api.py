"""The calls that ``import voxrisk as vr`` offers beside plain metrics: files in, records out."""

from __future__ import annotations  # help() shows names of types, not a wall of them

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxrisk.corpus import Utterance, read_corpus
from voxrisk.results import Results
from voxrisk.types import Embeddings, InputError, as_path

if TYPE_CHECKING:
    from voxrisk.measure import Population

Corpus = Path | str | Sequence[Utterance]
Vectors = Embeddings | Path | str


def anonymize(
    corpus: Corpus, out: Path | str, anonymizer: str = "mcadams", **options: Any
) -> list[Utterance]:
    """Protect speech and return the rows of the protected corpus.

    Args:
        corpus: A corpus (folder or manifest), or its utterances.
        out: Folder for the protected speech; a run that was stopped goes on there.
        anonymizer: ``mcadams``, ``world``, ``knn``, ``private-knn``, ``pool``,
            ``package.module:function``, or a command with {input} and {output}.
        **options: As of :func:`voxrisk.protect.run.anonymize`: ``options={"part": "light"}``,
            ``targets``, ``select``, ``per``, ``seed``, ``workers``, ``force``, ``fresh``.
    """
    from voxrisk.protect.anonymizers import named_tool
    from voxrisk.protect.run import anonymize as run

    if not isinstance(anonymizer, str):
        raise InputError(
            "an anonymizer is given by its name, your own as 'package.module:function', and this "
            f"is a {type(anonymizer).__name__}"
        )
    given = _known(run, options, aside=("corpus", "out", "name"))
    if given.get("targets") is not None:
        given["targets"] = _rows(given["targets"])
    name, given["options"] = named_tool(anonymizer, given.get("options") or {})
    return run(_rows(corpus), as_path(out, "the output (out)"), name, **given)


def embed(
    corpus: Corpus, out: Path | str, encoder: str | Path = "ecapa-voxceleb", **options: Any
) -> Embeddings:
    """Speaker embeddings of a corpus, written to the NPZ file ``out`` and returned.

    Args:
        corpus: A corpus (folder or manifest), or its utterances.
        out: The NPZ file; what is finished is used again.
        encoder: A ready encoder, or the folder of a trained attacker.
        **options: As of :func:`voxrisk.attack.embed.embed_corpus`: ``device``, ``workers``.
    """
    from voxrisk.attack.embed import embed_corpus

    given = _known(embed_corpus, options, aside=("rows", "encoder", "output"))
    place = as_path(out, "the output (out)")
    return embed_corpus(_rows(corpus), str(as_path(encoder, "an encoder")), place, **given)


def measure_crowd(
    enrolled: Vectors,
    tested: Vectors,
    *,
    L: Sequence[int] | int = (1,),
    N: Sequence[int] | int | None = None,
    **options: Any,
) -> Population:
    """Singling Out, Linkability and EER in a crowd: ``found.linkability[3, 100]``.

    Args:
        enrolled: What the attacker holds: embeddings of known people, or their file.
        tested: The published speech under attack, of some of them; or its file.
        L: Utterances of each voice.
        N: Sizes of the crowd; None: 20, 100, 200, 400 … and everybody.
        **options: Other choices of :class:`voxrisk.measure.Protocol`: ``resamples``, ``seed`` …
    """
    from voxrisk.measure import Protocol
    from voxrisk.measure import measure_crowd as measure
    from voxrisk.shards import spread

    given = _known(Protocol, options, aside=("lengths", "sizes"))
    sizes = None if N is None else _numbers("N", N)
    protocol = Protocol(lengths=_numbers("L", L), sizes=sizes, **given)
    return measure(
        enrolled=_vectors(enrolled), tested=_vectors(tested), protocol=protocol, spread=spread
    )


def compare(runs: Mapping[str, Any] | Sequence[Any], path: Path | str) -> None:
    """Write a page that compares several evaluations.

    Args:
        runs: Results, or folders of runs; a mapping gives them names.
        path: The HTML file.
    """
    from voxrisk.report.compare import write_compare

    if isinstance(runs, str | Path | Results) or not isinstance(runs, Iterable):
        raise InputError(
            f"a comparison needs a list of at least two runs, and this is a {type(runs).__name__}"
        )
    names = list(runs) if isinstance(runs, Mapping) else None
    held = list(runs.values() if isinstance(runs, Mapping) else runs)
    write_compare([_results(run) for run in held], as_path(path, "the page"), names=names)


def write_report(run: Results | Path | str, path: Path | str) -> None:
    """Write the report of one evaluation as one HTML file."""
    from voxrisk.report.html import write_report as write

    write(_results(run), as_path(path, "the page"))


def _results(run: Results | Path | str) -> Results:
    return run if isinstance(run, Results) else Results.read(run)


def _vectors(given: Vectors) -> Embeddings:
    from voxrisk.files.embeddings import read_embeddings

    return given if isinstance(given, Embeddings) else read_embeddings(given)


def _numbers(name: str, given: Any) -> tuple[int, ...]:
    """One whole number or several, as NumPy has them too."""
    import operator

    several = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    try:
        return tuple(operator.index(n) for n in several)
    except TypeError as error:
        raise InputError(f"{name} is {given!r}; it is a whole number, or several") from error


def _known(
    function: Callable[..., Any], options: Mapping[str, Any], *, aside: Sequence[str]
) -> dict[str, Any]:
    """The options, if ``function`` has them and they are of its types."""
    import msgspec

    hints = typing.get_type_hints(function)
    known = [name for name in inspect.signature(function).parameters if name not in aside]
    for name, value in options.items():
        if name not in known:
            raise InputError(f"there is no option {name!r}; there is {', '.join(known)}")
        try:
            msgspec.convert(value, hints.get(name, Any))
        except msgspec.ValidationError as error:
            raise InputError(f"{name} is {value!r}; {error}") from error
        except TypeError:
            continue  # types of our own: their own code looks at them
    return dict(options)


def _rows(corpus: Corpus) -> list[Utterance]:
    if isinstance(corpus, str | Path) or not isinstance(corpus, Iterable):
        return read_corpus(corpus)
    rows = list(corpus)
    if not all(isinstance(row, Utterance) for row in rows):
        raise InputError(
            "a corpus is a folder, a manifest, or a list of voxrisk.Utterance; "
            f"this is a list of {type(rows[0]).__name__}"
        )
    return rows
