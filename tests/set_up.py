"""Look for a part of the system that the tests need, and install it where that is allowed.

    python tests/set_up.py compiler|npm|browser

Debian's packages are used where `apt-get` exists and the user is root; a browser is first downloaded
by playwright. A machine where nothing can be installed goes on without: the package is built
without its native kernels, and tests that need the part are left out and counted (conftest.py). In CI
that is an error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "compiler": ["c++", "g++", "clang++"],
    "npm": ["npm"],
    "browser": [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
        "microsoft-edge",
    ],
}
"""Commands of a part; one is enough."""
PACKAGES = {"compiler": ["g++"], "npm": ["nodejs", "npm"], "browser": ["chromium"]}
"""Debian's packages of a part."""
WITHOUT = {
    "compiler": "neural is built without its native kernels",
    "npm": "the pages are not checked",
    "browser": "pages are not tested",
}

ASK_DRIVER = """
from playwright.sync_api import sync_playwright
with sync_playwright() as driver:
    print(driver.chromium.executable_path)
"""
"""In a process of its own: where libraries are missing, playwright's driver does not start, either."""


def find_part(part: str) -> str | None:
    """Path of the program, or None; for a browser also that of playwright's download."""
    installed = next(filter(None, map(shutil.which, COMMANDS[part])), None)
    return installed or (find_downloaded_browser() if part == "browser" else None)


def find_downloaded_browser() -> str | None:
    """Path of the Chromium that playwright has downloaded, if it starts on this system."""
    asked = subprocess.run([sys.executable, "-c", ASK_DRIVER], capture_output=True, text=True)
    path = asked.stdout.strip()
    if asked.returncode or not Path(path).exists():
        return None
    started = subprocess.run([path, "--version"], capture_output=True, check=False)
    return None if started.returncode else path


def download_browser() -> None:
    """Let playwright download its Chromium; without a network that fails, quietly."""
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=600)


def install_packages(packages: list[str]) -> None:
    """Install Debian's packages, if this is Debian and the user is root."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return
    print(f"Installing {' and '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        # dpkg writes three lines for each package, even if apt-get is quiet; errors go to stderr
        command = ["apt-get", "--quiet=2", *arguments]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def main() -> None:
    part = sys.argv[1]
    if not find_part(part) and part == "browser":
        download_browser()
    if not find_part(part):
        install_packages(PACKAGES[part])
    if not find_part(part):
        print(f"There is no {part} on this machine, and none could be installed: {WITHOUT[part]}")
        sys.exit(1 if os.environ.get("CI") else 0)


if __name__ == "__main__":
    main()
