"""The README as a new user takes it: every snippet is run as it stands, on small files.

Models are stood in for by an encoder that costs nothing and the light part of knn, and the speech
recogniser is left out: what is tested is that the lines work, not their figures.
"""

import contextlib
import functools
import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plain_encoder import PlainEncoder
from short_speech import cut_short
from simulated_voices import voices
from voxrisk import shards
from voxrisk.attack import encoders
from voxrisk.cli import app, in_front
from voxrisk.corpus import Utterance, read_corpus, write_corpus
from voxrisk.corpus.demo import make_demo
from voxrisk.files.embeddings import write_embeddings
from voxrisk.pipeline import evaluate, evaluation
from voxrisk.protect import anonymizers
from voxrisk.results import UtilityResult

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"(?ms)^```(?P<kind>\w+)\n(?P<code>.*?)^```")


def blocks(kind: str) -> list[str]:
    return [b["code"] for b in FENCE.finditer(README) if b["kind"] == kind]


def commands() -> list[list[str]]:
    """The words of each command, without comments; in their order."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with everything that the README names, entered."""
    folder = tmp_path_factory.mktemp("readme")
    _scores(folder)
    write_embeddings(folder / "A.npz", voices(100, 60, seed=0, tag="a"))
    write_embeddings(folder / "B.npz", voices(12, 30, seed=1, tag="b"))
    rows = cut_short(make_demo(folder / "all", voices=14, sentences=1), folder / "short")
    people = sorted({row.speaker for row in rows})
    for name, own in (("speech", people[:6]), ("other-people", people[6:])):
        (folder / name).mkdir()
        table: list[Utterance] = [row for row in rows if row.speaker in own]
        write_corpus(folder / name / "manifest.csv", table)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("ecapa-voxceleb", "wespeaker-resnet34"):
            patch.setitem(encoders.ENCODERS, name, PlainEncoder)
        light = functools.partial(anonymizers.ANONYMIZERS["knn"], part="light")
        patch.setitem(anonymizers.ANONYMIZERS, "knn", light)
        quick = replace(evaluation.EFFORTS["standard"], resamples=20, lengths=(1,), suite=())
        patch.setitem(evaluation.EFFORTS, "standard", quick)
        deaf = UtilityResult(missing={"all": "left out by the test"})
        patch.setattr(evaluate, "measure_usefulness", lambda *_: deaf)
        patch.setattr(shards, "cores", lambda: 1)  # what is patched is patched in this process
        protected = anonymizers_output(folder)
        assert len(protected) == len(read_corpus(folder / "speech"))
        yield folder


def anonymizers_output(folder: Path) -> list[Utterance]:
    from voxrisk.protect.run import anonymize

    return anonymize(read_corpus(folder / "speech"), folder / "protected", "mcadams")


def _scores(folder: Path) -> None:
    """Scores of two systems on the same trials, and who speaks."""
    speakers = [f"s{k}" for k in range(8)]
    utterances = [(f"{s}-{i}", s) for s in speakers for i in range(4)]
    rng = np.random.default_rng(0)
    lines: dict[str, list[str]] = {
        "trials": ["enroll,trial,label"],
        "original": ["enroll,trial,score"],
        "anonymized": ["enroll,trial,score"],
    }
    for who in speakers:
        for name, owner in utterances:
            same = owner == who
            lines["trials"].append(f"{who},{name},{'target' if same else 'nontarget'}")
            for system, apart in (("original", 4.0), ("anonymized", 1.0)):
                lines[system].append(f"{who},{name},{apart * same + rng.normal():.4f}")
    for name, rows in lines.items():
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (folder / "utt2spk").write_text("".join(f"{u} {s}\n" for u, s in utterances))


def test_there_are_snippets_to_run() -> None:
    assert len(blocks("python")) == 2
    assert [words[:2] for words in commands()] == [
        ["make", "demo"], ["make", "test"], ["voxrisk", "measure"], ["voxrisk", "population"],
        ["voxrisk", "evaluate"], ["voxrisk", "evaluate"], ["voxrisk", "compare"],
    ]  # fmt: skip


def test_make_has_what_the_readme_asks_for() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in commands():
        if words[0] == "make":
            assert re.search(rf"(?m)^{words[1]}:", makefile)


def test_make_demo_says_what_it_does_while_it_installs(tmp_path: Path) -> None:
    """It was silent for minutes. What would be printed and run, in order, for a new environment."""
    if shutil.which("make") is None:
        pytest.skip("no make here")
    done = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path / 'new'}", "demo"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()

    def place(words: str) -> int:
        return next(k for k, line in enumerate(lines) if words in line)

    told = [place(f'echo "{step}/3') for step in (1, 2, 3)]
    assert told == sorted(told)
    install = place("--editable")
    assert told[1] < install < told[2]
    assert "--quiet" not in lines[install]
    assert place("evaluating two anonymizers") > told[2]


def test_every_command_works_as_it_stands(place: Path) -> None:
    for words in commands():
        if words[0] != "voxrisk":
            continue
        said = io.StringIO()
        # measure and population both write to "out": a user has one folder for each page read.
        arguments = [f"{words[1]}-out" if word == "out" else word for word in words[1:]]
        with contextlib.redirect_stdout(said):
            app(in_front(arguments), standalone_mode=False)
        if words[1] == "measure":
            heads = [line.split("  ")[0] for line in _printed() if not line.startswith("…")]
            assert all(head in said.getvalue() for head in heads)
    assert (place / "compare.html").is_file()
    assert (place / "run" / "report.html").is_file()
    assert (place / "run2" / "report.html").is_file()


def _printed() -> list[str]:
    """What the README says that measure prints."""
    block = next(b for b in blocks("console") if "voxrisk measure" in b)
    return [line for line in block.splitlines() if line and not line.startswith("$")]


def test_ten_lines_of_python_give_the_figures_they_say() -> None:
    code = blocks("python")[0]
    seen: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), seen)
    for line in code.splitlines():
        call, _, said = line.partition("  # ")
        if said and re.match(r"^[\d.]+$|^'", said):
            found = eval(call, seen)
            assert (round(found, 3) if isinstance(found, float) else found) == eval(said), line


def test_the_evaluation_in_python_works_as_it_stands(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = blocks("python")[1].replace('"run', '"python-run')  # "run" holds the command's
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "informed" in said
    assert (place / "python-run" / "report.html").is_file()
