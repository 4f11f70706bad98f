"""Audio files that are not what their header says."""

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxrisk.corpus import Utterance, read_audio
from voxrisk.corpus.audio import audio_seconds
from voxrisk.types import InputError

FORMS = {
    "wav": ("WAV", "PCM_16"), "wavex": ("WAVEX", "PCM_24"), "w64": ("W64", "PCM_16"),
    "aiff": ("AIFF", "PCM_16"), "aifc": ("AIFF", "FLOAT"), "au": ("AU", "ULAW"),
    "rf64": ("RF64", "PCM_16"), "caf": ("CAF", "PCM_16"), "sph": ("NIST", "PCM_16"),
    "flac": ("FLAC", "PCM_16"), "ogg": ("OGG", "VORBIS"), "mp3": ("MP3", "MPEG_LAYER_III"),
}  # fmt: skip


def sound(path: Path, *, channels: int = 1, seconds: float = 1.0) -> bytes:
    kind, subtype = FORMS[path.suffix[1:]]
    wave = np.random.default_rng(0).normal(0, 0.1, (round(16_000 * seconds), channels))
    soundfile.write(path, wave, 16_000, format=kind, subtype=subtype)
    return path.read_bytes()


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("ending", FORMS)
def test_a_file_of_any_form_is_whole_or_said_to_be_cut(
    tmp_path: Path, ending: str, channels: int
) -> None:
    path = tmp_path / f"x.{ending}"
    data = sound(path, channels=channels)
    assert len(read_audio(path)) == 16_000
    for kept in (0.999, 0.9, 0.5):
        path.write_bytes(data[: int(len(data) * kept)])
        with pytest.raises(InputError, match=rf"x\.{ending}: (is cut short|cannot be read)"):
            read_audio(path)


def test_what_is_appended_does_not_cut_a_file(tmp_path: Path) -> None:
    """Tags behind the sound are common; a file may be longer than its sound."""
    for ending in ("wav", "w64", "aiff", "rf64", "caf"):
        path = tmp_path / f"x.{ending}"
        path.write_bytes(sound(path) + b"LIST\x04\0\0\0tag!")
        assert len(read_audio(path)) >= 16_000


def test_a_stream_of_unknown_length_is_read(tmp_path: Path) -> None:
    """Programs that write to a pipe leave the length open."""
    data = bytearray(sound(tmp_path / "x.wav"))
    at = data.index(b"data") + 4
    data[at : at + 4] = b"\xff\xff\xff\xff"
    (tmp_path / "x.wav").write_bytes(data)
    assert len(read_audio(tmp_path / "x.wav")) == 16_000


@pytest.mark.parametrize("rate", [1, 100, 3_999, 384_001, 2**31 - 1])
def test_a_rate_that_no_recording_has_is_refused(tmp_path: Path, rate: int) -> None:
    """At 1 Hz a second would become 16,000 times as long."""
    path = tmp_path / "x.wav"
    data = bytearray(sound(path))
    data[24:28] = struct.pack("<I", rate)
    path.write_bytes(data)
    row = Utterance(utterance="u", path=path, speaker="s")
    for read in (read_audio, audio_seconds):
        with pytest.raises(InputError, match=rf"x\.wav: its header says {rate} Hz"):
            read(row)


def test_a_header_that_claims_years_of_sound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.flac"
    data = bytearray(sound(path))
    data[22:26] = b"\xff\xff\xff\xff"  # 32 of the 36 bits that count the samples
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.flac: \d+\.\d hours .* cut it into segments"):
        read_audio(path)


def test_forms_whose_end_cannot_be_told_are_refused(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.voc", np.zeros(1600), 16_000, format="VOC")
    with pytest.raises(
        InputError, match=r"x\.voc: is of the format VOC; convert it to WAV or FLAC"
    ):
        read_audio(tmp_path / "x.voc")
