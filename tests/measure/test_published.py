"""Published figures, reached from the published scores to the printed digits."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from voxrisk import measure
from voxrisk.files.joining import join
from voxrisk.files.scores import read_scores, read_trials
from voxrisk.measure import Trials

VPC_ROWS = 24


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(_lines(path)))


@pytest.fixture(scope="module")
def vpc(golden: Path) -> Path:
    return golden / "vpc2020_libri_test"


def vpc_rows(vpc: Path) -> Iterator[tuple[dict[str, str], Trials]]:
    for row in _csv(vpc / "expected.csv"):
        gender = "f" if "_trials_f" in row["pair"] else "m"
        keys = read_trials(vpc / "meta" / f"trials_{gender}.trials")
        yield row, join(read_scores(vpc / row["file"]), keys)[0]


def test_voiceprivacy_2020_figures_to_the_printed_digits(vpc: Path) -> None:
    """VoicePrivacy 2020 tools on its own score files: EER as %.4g %, the rest as printed."""
    seen = 0
    for row, scored in vpc_rows(vpc):
        curve = scored.roc
        found = {
            "EER_pct": f"{100 * measure.kaldi_eer(curve):.4g}",
            "ROCCH_EER_pct": f"{100 * measure.rocch_eer(curve):.3f}",
            "minDCF_p01": f"{measure.min_dcf(curve, p_target=0.01):.4f}",
            "minDCF_p001": f"{measure.min_dcf(curve, p_target=0.001):.4f}",
            "Cllr_min": f"{measure.min_cllr(curve):.3f}",
            "Cllr_act": f"{measure.cllr(scored.target, scored.nontarget):.3f}",
            "linkability": (f"{measure.d_sys(scored.target, scored.nontarget, compat='vpc'):.6f}"),
        }
        assert found == {key: row[key] for key in found}, (row["condition"], row["pair"])
        seen += 1
    assert seen == VPC_ROWS


def test_cosine_of_voiceprivacy_x_vectors(vpc: Path) -> None:
    """Enrolment is the plain mean of the x-vectors; figures from expected_cosine.csv."""
    enrolled = dict(map(str.split, _lines(vpc / "meta" / "enrolls.utt2spk")))
    for row in _csv(vpc / "expected_cosine.csv"):
        enroll = np.load(vpc / "xvectors" / f"{row['enroll_npz']}.npz")
        trial = np.load(vpc / "xvectors" / f"{row['trial_npz']}.npz")
        speaker = np.array([enrolled[str(u)] for u in _ids(enroll)])
        models = {s: _vectors(enroll)[speaker == s].mean(axis=0) for s in np.unique(speaker)}
        vector = dict(zip(map(str, _ids(trial)), _vectors(trial), strict=True))
        scores: dict[str, list[float]] = {"target": [], "nontarget": []}
        for line in _lines(vpc / "meta" / f"trials_{row['gender']}.trials"):
            s, u, label = line.split()
            a, b = models[s], vector[u]
            scores[label].append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
        t, n = scores["target"], scores["nontarget"]
        assert f"{100 * measure.rocch_eer(t, n):.2f}" == row["ROCCH_EER_pct"]
        assert measure.min_cllr(t, n) == pytest.approx(float(row["Cllr_min"]), abs=5e-6)
        assert measure.cllr(t, n) == pytest.approx(float(row["Cllr_act"]), abs=5e-6)
        found = measure.d_sys(t, n, compat="vpc")
        assert found == pytest.approx(float(row["linkability"]), abs=5e-6)


def _ids(archive: "np.lib.npyio.NpzFile") -> np.ndarray:
    return next(archive[key] for key in archive.files if archive[key].dtype.kind in "US")


def _vectors(archive: "np.lib.npyio.NpzFile") -> np.ndarray:
    found = next(archive[key] for key in archive.files if archive[key].ndim == 2)
    return found.astype(np.float64)


def spane(folder: Path, corpus: str) -> tuple[np.ndarray, np.ndarray]:
    """Target and nontarget scores of one system, attacker and corpus."""
    rows = np.load(folder / f"{corpus}_llrs.npy")
    speaker = np.load(folder / f"{corpus}_spk_labels.npy")
    same = speaker[rows[:, 0].astype(int)] == speaker[rows[:, 1].astype(int)]
    return rows[same, 2], rows[~same, 2]


def test_spane_eer_by_its_own_definition(golden: Path) -> None:
    """Every eer.txt of SpAnE for which there are scores, to the last digit."""
    seen = 0
    for folder in sorted((golden / "spane_llrs").iterdir()):
        printed = dict(line.split()[::3] for line in _lines(folder / "eer.txt"))
        for scores in folder.glob("*_llrs.npy"):
            corpus = scores.name.removesuffix("_llrs.npy")
            found = measure.vertex_eer(*spane(folder, corpus))
            assert found == pytest.approx(float(printed[corpus]), abs=1e-12)
            seen += 1
    assert seen == 15


@pytest.mark.parametrize(
    ("folder", "corpus", "d_ece", "log10_l", "tag", "eer", "min_cllr", "d_sys"),
    [
        ("baseline_privacy_ignorant", "ls-test-clean",
         0.677227, 3.135133, "C", 0.020588, 0.059406, 0.471169),
        ("baseline_privacy_lazy-informed", "edacc-test",
         0.162996, 2.247974, "C", 0.309806, 0.766557, 0.138761),
        ("softvc_privacy_lazy-informed", "ls-test-clean",
         0.347697, 2.632458, "C", 0.158772, 0.502538, 0.298929),
        ("whisper_fastpitch_privacy_0_ignorant", "edacc-test",
         0.003032, 0.355879, "A", 0.478351, 0.995564, 0.014029),
    ],
)  # fmt: skip
def test_zebra_reference_program(
    golden: Path,
    folder: str,
    corpus: str,
    d_ece: float,
    log10_l: float,
    tag: str,
    eer: float,
    min_cllr: float,
    d_sys: float,
) -> None:
    """What the ZEBRA reference program gives for SpAnE's scores, to 1e-5."""
    t, n = spane(golden / "spane_llrs" / folder, corpus)
    curve = measure.roc(t, n)
    worst = measure.worst_case_disclosure(curve)
    assert measure.expected_disclosure(curve) == pytest.approx(d_ece, abs=1e-5)
    assert worst == pytest.approx(log10_l, abs=1e-5)
    assert measure.tag(worst) == tag
    assert measure.rocch_eer(curve) == pytest.approx(eer, abs=1e-5)
    assert measure.min_cllr(curve) == pytest.approx(min_cllr, abs=1e-5)
    assert measure.d_sys(t, n, compat="vpc") == pytest.approx(d_sys, abs=1e-5)


def test_zebra_of_unprotected_voiceprivacy_speech(vpc: Path) -> None:
    """Paper, Figure 3: original female LibriSpeech test speech is (0.58, 3.98, C)."""
    keys = read_trials(vpc / "meta" / "trials_f.trials")
    path = vpc / "scores" / "xg0_f00__libri_test_enrolls-libri_test_trials_f.txt.gz"
    curve = join(read_scores(path), keys)[0].roc
    assert f"{measure.expected_disclosure(curve):.2f}" == "0.58"
    assert f"{measure.worst_case_disclosure(curve):.2f}" == "3.98"


def test_asvspoof_scores_of_real_size(golden: Path) -> None:
    """Real trials with ties: definitions differ by less than the jump of the curve at the EER."""
    path = golden / "asvspoof2019_la" / "ASVspoof2019.LA.asv.dev.gi.trl.scores.txt.gz"
    t, n = [], []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        _, key, score = line.split()
        if key in ("target", "nontarget"):
            (t if key == "target" else n).append(float(score))
    curve = measure.roc(t, n)
    eers = [f(curve) for f in (measure.interpolated_eer, measure.kaldi_eer, measure.vertex_eer)]
    assert 0.0 < np.ptp(eers) < 0.003
    assert measure.rocch_eer(curve) <= measure.interpolated_eer(curve) + 1e-12
