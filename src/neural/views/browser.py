"""A browser on this machine, to print a page: none is needed for anything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
"""All are Chromium inside: they print without a screen."""
PATIENCE = 120
"""Seconds for a print."""


class NoBrowser(Exception):
    """Nothing that prints was found, or it failed; the message says what to do."""


def browser() -> str:
    """The first one found; NoBrowser where there is none."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    raise NoBrowser(
        f"no browser was found that prints: none of {', '.join(BROWSERS)} can be started from here. "
        "Open the page and print it from there: its button `print` shows everything on one page"
    )


def print_page(page: Path, out: Path, *, place: str = "#/all") -> None:
    """Print a page of one file as a PDF, whole or not at all."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0   # Chromium's own walls do not stand for root
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "page.pdf"
        command = [
            browser(), "--headless=new", *(["--no-sandbox"] if root else []), "--disable-gpu",
            "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile", "--no-pdf-header-footer",
            "--virtual-time-budget=20000", f"--print-to-pdf={made}", page.absolute().as_uri() + place,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise NoBrowser(f"{command[0]} did not print {page} in {PATIENCE} seconds") from None
        if done.returncode or not made.exists():
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise NoBrowser(f"{command[0]} could not print {page}: {said}")
        shutil.move(made, out)
