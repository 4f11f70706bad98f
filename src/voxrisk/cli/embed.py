"""``voxrisk embed``: one speaker vector for each utterance of a corpus."""

import json
from pathlib import Path
from typing import Annotated

import typer

from voxrisk.cli.engine import Engine
from voxrisk.types import InputError


def embed(
    corpus: Annotated[Path, typer.Argument(help="A folder of audio, a manifest, a known corpus.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="NPZ file to write.")],
    encoder: Annotated[
        str,
        typer.Option(help="ecapa-voxceleb, wespeaker-resnet34, a folder, an ONNX file, hub:o/n."),
    ] = "ecapa-voxceleb",
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each core.")
    ] = None,
    engine: Engine = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Embed each utterance of a corpus with a speaker encoder.

    A run that was killed continues where it stopped. An utterance that is silent, shorter than
    0.1 s or not finite stops the run, with its name.

    \b
    Example:
      voxrisk embed LibriSpeech/test-clean --encoder ecapa-voxceleb -o embeddings.npz
    """
    from voxrisk.attack.embed import embed_corpus
    from voxrisk.corpus import read_corpus

    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another file or add --force")
    found = embed_corpus(read_corpus(corpus), encoder, output, device=device, workers=workers)
    facts = {
        "output": str(output),
        "encoder": encoder,
        "utterances": len(found.utterance),
        "speakers": len(set(found.speaker.tolist())),
        "dimension": int(found.vectors.shape[1]),
    }
    if as_json:
        print(json.dumps(facts))
    else:
        print(
            f"{output}: {facts['utterances']} vectors of {facts['dimension']} values, "
            f"{facts['speakers']} speakers, by {encoder}"
        )
