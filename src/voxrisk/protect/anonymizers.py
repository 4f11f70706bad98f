"""The anonymizers by name. Each is a plain function; this is the one shape they share."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxrisk.corpus.audio import RATE
from voxrisk.protect.own_code import SIGNATURE, own_code, own_function
from voxrisk.types import InputError

Samples = NDArray[np.float32]
LIMITS = {"shortest": 0.5, "longest": 2.0}  # times the input: what a user's own code may give back


@dataclass(frozen=True)
class Anonymizer:
    """How one anonymizer is used, whatever it does inside. Speech is mono float32 at 16 kHz.

    Attributes:
        name: As in the manifest.
        convert: ``convert(samples, voices, generator, **drawn)`` gives the protected samples.
        learn: ``learn(speaker, utterances)`` gives the voice of a target speaker, computed once and
            used for many utterances; None if the anonymizer has no target speaker.
        draw: Parameters drawn for each unit (utterance, speaker or session), kept in the manifest.
        parameters: Everything that was chosen, for the manifest.
        keeps_duration: Whether the output must be as long as the input.
        target_seconds: How much speech of a target speaker is used.
        pool: How a pseudo-speaker is put together from several target speakers, if it is.
        identity: Hash of the user's own code or script: when it changes, work is done again.
    """

    name: str
    convert: Callable[..., Samples]
    learn: Callable[[str, Sequence[Samples]], Any] | None = None
    draw: Callable[[np.random.Generator], Mapping[str, Any]] = lambda generator: {}
    parameters: Mapping[str, Any] = field(default_factory=dict)
    keeps_duration: bool = True
    target_seconds: float = 120.0
    pool: Mapping[str, Any] | None = None
    identity: str = ""


def _mcadams(*, alpha: float | None = None, low: float = 0.5, high: float = 0.9) -> Anonymizer:
    from voxrisk.protect.mcadams import mcadams

    if alpha is not None:
        low = high = float(alpha)
    if not 0 < low <= high:
        raise InputError(f"mcadams: low is {low} and high is {high}; give 0 < low <= high")

    return Anonymizer(
        "mcadams",
        lambda samples, voices, generator, alpha: mcadams(samples, alpha=alpha),
        draw=lambda generator: {"alpha": round(float(generator.uniform(low, high)), 6)},
        parameters={"low": low, "high": high},
    )


def _world(*, strength: float = 1.0, target_seconds: float = 60.0) -> Anonymizer:
    from voxrisk.protect.world import target_statistics, world

    return Anonymizer(
        "world",
        lambda samples, voices, generator: world(samples, voices[0], strength=strength),
        learn=lambda speaker, utterances: target_statistics(utterances),
        parameters={"strength": strength, "target_seconds": target_seconds},
        target_seconds=target_seconds,
    )


def _knn(
    *,
    part: str = "whisper",
    k: int | None = None,
    encoder: str | None = None,
    vocoder: str | None = None,
    target_seconds: float = 120.0,
) -> Anonymizer:
    from voxrisk.protect.knn import knn, learn
    from voxrisk.protect.parts import part as make_part
    from voxrisk.protect.world import match_level

    pair = make_part(part, encoder=encoder, vocoder=vocoder)
    return Anonymizer(
        "knn",
        lambda samples, voices, generator: match_level(knn(samples, voices, pair, k=k), samples),
        learn=lambda speaker, utterances: learn(utterances, pair),
        parameters={"part": part, "k": k or pair.k, "target_seconds": target_seconds},
        target_seconds=target_seconds,
    )


def _private_knn(
    *,
    configuration: str = "7-8",
    part: str = "whisper",
    encoder: str | None = None,
    vocoder: str | None = None,
    target_seconds: float = 120.0,
) -> Anonymizer:
    from voxrisk.protect.parts import part as make_part
    from voxrisk.protect.private_knn import configuration as named
    from voxrisk.protect.private_knn import learn_phones, private_knn
    from voxrisk.protect.world import match_level

    weight, candidates = named(str(configuration))
    pair = make_part(part, encoder=encoder, vocoder=vocoder)
    return Anonymizer(
        "private-knn",
        lambda samples, voices, generator: match_level(
            private_knn(samples, voices[0], pair, weight=weight), samples
        ),
        learn=lambda speaker, utterances: learn_phones(utterances, pair, candidates=candidates),
        parameters={
            "configuration": configuration,
            "part": part,
            "weight": weight,
            "candidates": candidates,
            "target_seconds": target_seconds,
        },
        keeps_duration=False,
        target_seconds=target_seconds,
    )


def _pool(
    *,
    strategy: str = "far",
    gender: str = "same",
    size: int = 4,
    farthest: int = 20,
    part: str = "whisper",
    k: int | None = None,
    encoder: str | None = None,
    vocoder: str | None = None,
    target_seconds: float = 60.0,
) -> Anonymizer:
    through = _knn(part=part, k=k, encoder=encoder, vocoder=vocoder, target_seconds=target_seconds)
    choice = {"strategy": strategy, "gender": gender, "size": size, "farthest": farthest}
    parameters = {**through.parameters, **choice}
    return replace(through, name="pool", parameters=parameters, pool=choice)


def _transcribe(*, voice: str = "af_heart", asr: str = "whisper-tiny.en") -> Anonymizer:
    from voxrisk.corpus.kokoro import VOICES
    from voxrisk.protect.transcribe import RANDOM, check_recogniser, check_voice, transcribe

    check_voice(voice)
    check_recogniser(asr)

    def draw(generator: np.random.Generator) -> Mapping[str, Any]:
        return {"voice": VOICES[int(generator.integers(len(VOICES)))] if voice == RANDOM else voice}

    return Anonymizer(
        "transcribe",
        lambda samples, voices, generator, voice: transcribe(samples, voice, asr=asr),
        draw=draw,
        parameters={"voice": voice, "asr": asr},
        keeps_duration=False,
    )


def _command(
    *,
    run: str = "",
    timeout: float = 600.0,
    shortest: float = 0.5,
    longest: float = 2.0,
    target_seconds: float = 60.0,
) -> Anonymizer:
    from voxrisk.protect.command import parse_command, run_command

    if not run:
        raise InputError(
            "command needs the program: --set 'run=program --in {input} --out {output}'"
        )
    words = parse_command(run)

    def convert(samples: Samples, voices: Sequence[Any], generator: Any) -> Samples:
        speaker, speech = voices[0] if voices else ("", None)
        return run_command(
            samples,
            words,
            target=speech,
            target_speaker=speaker,
            seed=int(generator.integers(2**31)),
            timeout=timeout,
            shortest=shortest,
            longest=longest,
        )

    wants_target = "{target" in run
    return Anonymizer(
        "command",
        convert,
        learn=(lambda speaker, speech: (speaker, np.concatenate(speech))) if wants_target else None,
        parameters={"run": run, "timeout": timeout, "shortest": shortest, "longest": longest},
        keeps_duration=False,
        target_seconds=target_seconds,
        identity=own_code("command", {"run": run}),
    )


ANONYMIZERS: dict[str, Callable[..., Anonymizer]] = {
    "mcadams": _mcadams,
    "world": _world,
    "knn": _knn,
    "private-knn": _private_knn,
    "pool": _pool,
    "transcribe": _transcribe,
    "command": _command,
}


def anonymizer(name: str, options: Mapping[str, Any] | None = None) -> Anonymizer:
    """Make an anonymizer by name, or from a Python function given as ``package.module:function``.

    The function is called as ``function(samples, rate=16000, target=…, seed=…)``, where ``target``
    is a list of the target speaker's utterances, and returns samples.

    Raises:
        InputError: If the name or an option is unknown.
    """
    if ":" in name:
        return _from_function(name, dict(options or {}))
    if name not in ANONYMIZERS:
        raise InputError(
            f"no anonymizer {name!r}; choose {', '.join(ANONYMIZERS)}, "
            "or give package.module:function"
        )
    build = ANONYMIZERS[name]
    known = inspect.signature(build).parameters
    if unknown := [key for key in options or {} if key not in known]:
        raise InputError(f"{name} has no option {unknown[0]!r}; it has {', '.join(known)}")
    return build(**(options or {}))


def wants_targets(name: str, options: Mapping[str, Any] | None = None) -> bool:
    """Whether an anonymizer converts to target speakers; without loading its models."""
    if name in ("knn", "private-knn", "pool"):
        return True
    return anonymizer(name, options).learn is not None


def _from_function(name: str, options: dict[str, Any]) -> Anonymizer:
    function = own_function(name)
    given = dict(options)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled code may have none
        signature = None
    takes = signature.parameters if signature else {}
    limits = {
        key: float(given.pop(key) if key in given and key not in takes else value)
        for key, value in LIMITS.items()
    }
    if signature:
        try:
            signature.bind(None, rate=RATE, target=[], seed=0, **given)
        except TypeError as error:
            wanted = SIGNATURE.format(name.partition(":")[2])
            raise InputError(
                f"the anonymizer {name} cannot be called ({error}); it has the signature "
                f"{signature} and must take {wanted}, and options of --set by name"
            ) from error

    def convert(samples: Samples, voices: Sequence[Any], generator: Any) -> Samples:
        seed = int(generator.integers(2**31))
        target = list(voices[0]) if voices else []
        try:
            out = np.asarray(function(samples, rate=RATE, target=target, seed=seed, **given))
        except InputError:
            raise
        except Exception as error:  # somebody else's code may raise anything
            raise InputError(f"{name} failed ({type(error).__name__}: {error})") from error
        ratio = out.size / len(samples)
        if not limits["shortest"] <= ratio <= limits["longest"]:
            raise InputError(
                f"{name} gave {out.size / RATE:.2f} s for {len(samples) / RATE:.2f} s of speech; "
                "set shortest and longest (times the input) if that is right"
            )
        return out

    return Anonymizer(
        name,
        convert,
        learn=lambda speaker, utterances: list(utterances),
        parameters=options,
        keeps_duration=False,
        identity=own_code(name),
    )


def named_tool(name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and options of an anonymizer; a text with ``{input}`` is an external program."""
    if "{input}" in name:
        return "command", {**options, "run": name}
    return name, dict(options)


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Read ``key=value`` pairs; values are JSON where they can be, else text.

    >>> parse_options(["alpha=0.8", "part=light"])
    {'alpha': 0.8, 'part': 'light'}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--set {pair!r}: write key=value")
        try:
            options[key.replace("-", "_")] = json.loads(value)
        except ValueError:
            options[key.replace("-", "_")] = value
    return options
