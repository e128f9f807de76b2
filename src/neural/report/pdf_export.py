"""PDF export of a report page through an installed Chromium browser."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from neural.core.errors import NeuralError
from neural.core.platform_support import is_superuser

BROWSER_COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
"""Browsers based on Chromium: they print without a display."""
PRINT_TIMEOUT_SECONDS = 120


class BrowserError(NeuralError):
    """No browser was found, or it failed to print; the message says how to go on."""


def find_browser() -> str:
    """The path of the first browser found; BrowserError where there is none."""
    for name in BROWSER_COMMANDS:
        path = shutil.which(name)
        if path:
            return path
    raise BrowserError(
        f"no browser that can print was found: none of {', '.join(BROWSER_COMMANDS)} is installed. "
        "Open the page in a browser and use its `print` button, which shows a digest of all experiments"
    )


def print_to_pdf(html_path: Path, pdf_path: Path, *, fragment: str = "#/print") -> None:
    """Print an HTML file as PDF; the PDF appears complete or not at all.

    `fragment` is the URL fragment to open; `#/print` shows the digest of a report: a few pages that
    show all experiments.
    """
    with tempfile.TemporaryDirectory() as folder:
        temporary_pdf = Path(folder) / "page.pdf"
        command = [
            find_browser(),
            "--headless=new",
            # the sandbox of Chromium does not work for root
            *(["--no-sandbox"] if is_superuser() else []),
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            "--virtual-time-budget=20000",  # milliseconds for the scripts of the page
            f"--print-to-pdf={temporary_pdf}",
            html_path.absolute().as_uri() + fragment,
        ]
        try:
            process = subprocess.run(
                command,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=PRINT_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BrowserError(
                f"{command[0]} did not print {html_path} in {PRINT_TIMEOUT_SECONDS} seconds"
            ) from None
        if process.returncode or not temporary_pdf.exists():
            message = (process.stderr.strip().splitlines() or ["no error message"])[-1]
            raise BrowserError(f"{command[0]} could not print {html_path}: {message}")
        shutil.move(temporary_pdf, pdf_path)
