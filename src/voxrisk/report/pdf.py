"""A page as PDF, with the browser or the converter that is there."""

import shutil
import subprocess
from pathlib import Path

from voxrisk.files.atomic import atomic
from voxrisk.scratch import remove_scratch, scratch_folder, scratch_of, working_on
from voxrisk.types import InputError, MissingExtraError

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """Chromium or Chrome on the PATH."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def write_pdf(html_path: Path, pdf_path: Path, *, seconds: float = 120.0) -> None:
    """Print a report to PDF with headless Chromium, or with WeasyPrint where there is none.

    Raises:
        MissingExtraError: If neither is installed.
        InputError: If the page is not there or the browser fails.
    """
    if not html_path.is_file():
        raise InputError(f"{html_path} is not there; write the report first")
    if browser := find_browser():
        remove_scratch(scratch_of(pdf_path))  # of a run that was killed while it printed
        try:
            _with_browser(browser, html_path, pdf_path, seconds)
        finally:
            remove_scratch(scratch_of(pdf_path))
        return
    try:
        import weasyprint
    except ImportError as error:
        raise MissingExtraError(
            "a PDF needs Chromium or Chrome on the PATH (Debian: apt install chromium), or the "
            "package weasyprint (pip install weasyprint); or open report.html and print it"
        ) from error
    with atomic(pdf_path) as part:
        weasyprint.HTML(filename=str(html_path)).write_pdf(str(part))


def _with_browser(browser: str, html_path: Path, pdf_path: Path, seconds: float) -> None:
    with atomic(pdf_path) as part, working_on(pdf_path.absolute()), scratch_folder() as profile:
        command = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-quic",
            f"--user-data-dir={profile}", "--no-pdf-header-footer", f"--print-to-pdf={part}",
        ]  # fmt: skip
        address = html_path.resolve().as_uri()
        # Chromium refuses its sandbox to root and in many containers; the page is our own, and its
        # policy forbids every request and foreign script, so trying without it is safe.
        said = ""
        for more in ([], ["--no-sandbox"]):
            try:
                done = subprocess.run(
                    [*command, *more, address], capture_output=True, text=True, timeout=seconds,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise InputError(
                    f"{browser} did not print {html_path} within {seconds:g} s; "
                    "open it and print it by hand"
                ) from error
            if part.is_file():
                return
            said = done.stderr.strip().rpartition("\n")[2]
        raise InputError(f"{browser} could not print {html_path}: {said}")
