"""Names for speakers that tell nothing: S01, S02 … in an order only the owner of the run can make.

Were they numbered in the order of their ids, a list of participants would undo them. So the order
comes from a secret that is drawn once for each user and never leaves the cache folder. The same
user gets the same names for the same speakers, so runs can be compared person by person.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from voxrisk.files.atomic import write_private
from voxrisk.models import cache_folder
from voxrisk.notices import Notice
from voxrisk.pipeline.exposure import renamed
from voxrisk.pipeline.sharing import shown_reason
from voxrisk.pipeline.tables import as_csv
from voxrisk.results import AttackResult, AudioPair, Results, UtilityResult

SECRET = "pseudonyms.key"
PRIVATE = "private"


def pseudonyms(speakers: Sequence[str]) -> dict[str, str]:
    """Speaker → S01 …; the numbers say nothing about the ids."""
    key = _secret()
    order = sorted(set(speakers), key=lambda s: hmac.digest(key, s.encode(), "sha256"))
    width = max(len(str(len(order))), 2)
    return {speaker: f"S{i:0{width}d}" for i, speaker in enumerate(order, start=1)}


def write_shared(
    results: Results, folder: Path, *, people: Sequence[str], reveal: bool = False
) -> Results:
    """Write results that may be shared, and beside them, for the owner alone, whose name is whose.

    Args:
        results: With speakers under their ids.
        folder: Of the run.
        people: All speakers, also those that no figure names.
        reveal: Share ids as they are.

    Returns:
        The results as they were written.
    """
    alias = {s: s for s in people} if reveal else pseudonyms(people)
    shared = results if reveal else hide_names(results, alias)
    shared.write(folder / "results.json")
    _write_key(folder / PRIVATE, alias, results.notices)
    return shared


def hide_names(results: Results, alias: Mapping[str, str]) -> Results:
    """The same results with speakers under other names, and no file or utterance named."""
    return replace(
        results,
        attacks=tuple(_renamed(a, alias) for a in results.attacks),
        exposure=renamed(results.exposure, alias),
        similarity=results.similarity.renamed(alias) if results.similarity else None,
        notices=tuple(n.pseudonymous(alias) for n in results.notices),
        utility=_unquoted(results.utility) if results.utility else None,
        audio=_anonymous(results.audio, alias),
    )


def _unquoted(utility: UtilityResult) -> UtilityResult:
    missing, untrusted = (
        {name: shown_reason(why) for name, why in reasons.items()}
        for reasons in (utility.missing, utility.untrusted)
    )
    return replace(utility, missing=missing, untrusted=untrusted)


def _anonymous(pairs: Sequence[AudioPair], alias: Mapping[str, str]) -> tuple[AudioPair, ...]:
    """Pairs to listen to in the order of the names; their place in the corpus would tell whose."""
    ordered = sorted(pairs, key=lambda pair: alias[pair.speaker])
    return tuple(
        replace(pair, speaker=alias[pair.speaker], utterance=f"U{number:02d}", text="")
        for number, pair in enumerate(ordered, start=1)
    )


def _renamed(attack: AttackResult, alias: Mapping[str, str]) -> AttackResult:
    people = [
        replace(p, speaker=alias[p.speaker], nearest_other=alias.get(p.nearest_other or ""))
        for p in attack.speakers
    ]
    # Where two are equally exposed, the order must not be that of their ids.
    people.sort(key=lambda p: (-(p.linkability or 0.0), -(p.similarity or 0.0), p.speaker))
    return replace(attack, speakers=tuple(people))


def _secret() -> bytes:
    path = cache_folder() / SECRET
    if not path.is_file():
        write_private(path, secrets.token_hex(32))
    return path.read_bytes()


def _write_key(private: Path, alias: Mapping[str, str], notices: Sequence[Notice]) -> None:
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows = [{"pseudonym": alias[s], "speaker": s} for s in sorted(alias, key=alias.__getitem__)]
    write_private(private / "speakers.csv", as_csv(rows))
    write_private(private / "notices.txt", "".join(f"[{n.severity}] {n.text}\n" for n in notices))
