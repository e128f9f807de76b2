"""All heads of a model on one page, against BertViz's: how large, how long to write, how long until they are seen.

    python benchmarks/pages.py [--json] [--quick]

Both are given the same weights: 12 layers × 12 heads, causal, softmax of random scores, which compress worse than those
of a trained model. Both write one HTML file, BertViz with `model_view`. Each is opened in Chromium with the network
off; the time is from the beginning of the navigation to the first picture of all heads, as the page's own clock says.
BertViz's needs scripts from the network: where they are not to be had, nothing is drawn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

LAYERS, HEADS = 12, 12
SIZES = (64, 128, 256)
GOALS = {"size, BertViz / ours, n = 256": 20.0}
PATIENCE = 20
"""Seconds for a page to draw."""
DRAWN = {
    "ours": "performance.getEntriesByName('neural heads drawn').length > 0",
    "BertViz": "document.querySelectorAll('svg line, svg path, svg rect').length > 0",
}
CLOCK = """(() => {
  const [one] = performance.getEntriesByName('neural heads drawn')
  return one ? one.startTime + one.duration : performance.now()
})()"""


def weights(n: int) -> list[torch.Tensor]:
    """For each layer (1, H, n, n)."""
    scores = torch.randn(LAYERS, 1, HEADS, n, n, generator=torch.Generator().manual_seed(0)) * 2
    return list(scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).softmax(-1))


def ours(layers: list[torch.Tensor], tokens: list[str]) -> str:
    """A look, as `neural debug -o` writes it."""
    from neural.report import looked
    from neural.views.report_page import page

    maps: dict[str, np.ndarray | bytes] = {f"layer.{at}": one[0].numpy() for at, one in enumerate(layers)}
    return page(looked("all heads", maps, keys=tokens, causal=True), "all heads")


def theirs(layers: list[torch.Tensor], tokens: list[str]) -> str:
    """BertViz's model view."""
    from bertviz import model_view

    return model_view(layers, tokens, html_action="return").data


WAYS: dict[str, Callable[[list[torch.Tensor], list[str]], str]] = {"ours": ours, "BertViz": theirs}


def pages(*, quick: bool) -> dict[str, Any]:
    """Megabytes, seconds to write and milliseconds until something is drawn (none: it was not), by n and way."""
    from playwright.sync_api import sync_playwright

    from neural.views.browser import browser

    found: dict[int, dict[str, Any]] = {}
    for write in WAYS.values():   # what is loaded at the first use does not count
        write(weights(2), ["a", "b"])
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        chromium = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        for n in SIZES[:1] if quick else SIZES:
            layers, tokens = weights(n), [f"t{at}" for at in range(n)]
            found[n] = {}
            for name, write in WAYS.items():
                started = time.perf_counter()
                file = Path(folder) / f"{name}-{n}.html"
                file.write_text(write(layers, tokens), encoding="utf-8")
                seconds = time.perf_counter() - started
                drawn, asked = opened(chromium, file, DRAWN[name])
                found[n][name] = {"megabytes": file.stat().st_size / 1e6, "seconds to write": seconds,
                                  "milliseconds to the first picture": drawn, "requests": asked}  # fmt: skip
        chromium.close()
    ratios = {f"size, BertViz / ours, n = {n}": one["BertViz"]["megabytes"] / one["ours"]["megabytes"]
              for n, one in found.items()}  # fmt: skip
    return {"sizes": found, "ratios": ratios}


def opened(chromium: Any, file: Path, drawn: str) -> tuple[float | None, int]:
    """Milliseconds until it is drawn, and how many files it asked the network for."""
    context = chromium.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
    try:
        page.goto(file.as_uri(), timeout=PATIENCE * 10_000)
        end = time.monotonic() + PATIENCE
        while not page.evaluate(drawn):   # wait_for_function would eval, which our page's policy forbids
            if time.monotonic() > end:
                return None, len(asked)
            page.wait_for_timeout(5)
        return page.evaluate(CLOCK), len(asked)
    finally:
        context.close()


def show_pages(found: dict[str, Any]) -> None:
    """As a table."""
    print(f"one page of {LAYERS} × {HEADS} heads, opened offline")
    print("     n            size     written   first picture")
    for n, ways in found["sizes"].items():
        for name, one in ways.items():
            drawn = one["milliseconds to the first picture"]
            seen = f"{drawn:8.0f} ms" if drawn is not None else f"never: {one['requests']} request(s) to the network"
            print(f"  {n:4} {name:8} {one['megabytes']:7.2f} MB {one['seconds to write']:8.2f} s   {seen}")
    for name, value in found["ratios"].items():
        print(f"  {name:42} {value:9.3g}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 64 alone")
    options = parser.parse_args()
    found = pages(quick=options.quick)
    print(json.dumps({**found, "goals": GOALS}, indent=2)) if options.json else show_pages(found)


if __name__ == "__main__":
    main()
