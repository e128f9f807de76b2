"""The bundle of the package is built from the sources in web/; `make web` builds and compares it."""

import hashlib
import re
from pathlib import Path

from neural.report.html_page import BUNDLE_DIR

WEB = Path(__file__).parents[2] / "web"


def test_the_bundle_was_built_from_these_sources():
    sources = [file for file in (WEB / "src").rglob("*") if file.suffix in (".ts", ".tsx", ".css")]
    files = [*sources, WEB / "build.mjs", WEB / "package.json", WEB / "package-lock.json"]
    names = sorted(str(file.relative_to(WEB)) for file in files)
    sums = "".join(
        f"{name} {hashlib.sha256((WEB / name).read_bytes()).hexdigest()}\n" for name in names
    )
    (built,) = re.findall(
        r"/\* sources ([0-9a-f]{64})", (BUNDLE_DIR / "neural.js").read_text(encoding="utf-8")
    )
    assert built == hashlib.sha256(sums.encode()).hexdigest(), (
        "run `npm ci && npm run build` in web/"
    )


def test_the_bundle_is_small():
    # every page contains it: a page of 12 × 12 heads must stay below 5 MB
    assert sum(file.stat().st_size for file in BUNDLE_DIR.glob("neural.*")) < 400_000


def test_the_sources_set_no_markup():
    for file in (WEB / "src").rglob("*.ts*"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", file.read_text()
        ), file
