"""The package as a whole: light to import, clear when a part is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

import voxrisk
from voxrisk.types import Estimate, Interval, MissingExtraError, require


def test_import_and_help_load_nothing_heavy() -> None:
    """``import voxrisk`` and ``voxrisk --help`` stay fast because no heavy package is imported."""
    code = (
        "import sys, voxrisk, voxrisk.cli\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(voxrisk.cli.app, ['--help']).exit_code == 0\n"
        "heavy = {'numpy', 'scipy', 'numba', 'torch', 'matplotlib', 'pyarrow', 'soundfile'}\n"
        "heavy |= {'rich', 'filelock', 'platformdirs'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_imports_point_one_way_and_one_thing_draws() -> None:
    """An attack is not drawn where it is made, and nothing is drawn with a second library."""
    source = Path(voxrisk.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "matplotlib" not in text, path
        if path.parent.name in {"attack", "protect", "measure", "corpus", "files", "utility"}:
            assert "voxrisk.report" not in text, path


def test_the_public_names_are_these() -> None:
    """A name that goes or comes is a change of the interface: CHANGELOG and docs/api.md say so."""
    import voxrisk as vr

    assert set(vr.__all__) == {
        "Embeddings", "Estimate", "InputError", "Results", "Trials", "__version__", "anonymize",
        "compare", "d_sys", "eer", "embed", "evaluate", "measure_crowd", "measure_scores",
        "read_corpus", "read_embeddings", "write_report", "zebra",
    }  # fmt: skip
    for name in vr.__all__:
        assert getattr(vr, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        vr.nosuch  # noqa: B018


def test_figures_are_attributes() -> None:
    import voxrisk as vr

    same, other = [2.1, 1.7, 3.0, 0.4], [-1.0, 0.2, 0.9, -2.2, -0.3]
    assert round(vr.eer(same, other), 3) == 0.111
    assert vr.zebra(same, other).tag == "A"
    found = vr.measure_scores(
        vr.Trials(same + other, list("aabbaabbb"), list("aabbbcaca")), resamples=0
    )
    assert found.eer == found["rocch_eer"] == found.rocch_eer
    assert found.eer.chance == 0.5
    assert "d_sys" in found.undefined
    with pytest.raises(AttributeError, match="d_sys is undefined: 4 target trials"):
        found.d_sys  # noqa: B018


def test_missing_extra_names_the_way_out() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'voxrisk\[attack\]'"):
        require("no_such_package_anywhere", extra="attack")


def test_the_way_out_is_shared_and_what_users_wrote_is_not() -> None:
    """A report said: this needs the package '…'; install it with: pip install '…'."""
    from voxrisk.pipeline.sharing import shown_reason

    with pytest.raises(MissingExtraError) as missing:
        require("no_such_package_anywhere", extra="utility")
    assert shown_reason(str(missing.value)) == str(missing.value)
    assert "anna" not in shown_reason("the package 'anna meier' and 'voxrisk[utility] anna'")


def test_estimate_survives_json() -> None:
    interval = Interval(0.1, 0.3, 0.95, "speaker bootstrap")
    estimate = Estimate("rocch_eer", 0.2, 0.5, {"target": 3}, "ref", interval, {"seed": 1})
    assert Estimate.from_json(estimate.to_json()) == estimate


def test_an_estimate_is_never_nan() -> None:
    with pytest.raises(ValueError, match="never NaN"):
        Estimate("rocch_eer", float("nan"), 0.5, {}, "ref")
