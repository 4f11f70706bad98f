"""The package as a whole: light to import, clear when a part is missing."""

import subprocess
import sys

import pytest

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


def test_missing_extra_names_the_way_out() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'voxrisk\[attack\]'"):
        require("no_such_package_anywhere", extra="attack")


def test_estimate_survives_json() -> None:
    interval = Interval(0.1, 0.3, 0.95, "speaker bootstrap")
    estimate = Estimate("rocch_eer", 0.2, 0.5, {"target": 3}, "ref", interval, {"seed": 1})
    assert Estimate.from_json(estimate.to_json()) == estimate


def test_an_estimate_is_never_nan() -> None:
    with pytest.raises(ValueError, match="never NaN"):
        Estimate("rocch_eer", float("nan"), 0.5, {}, "ref")
