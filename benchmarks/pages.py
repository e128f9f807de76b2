"""A page of all heads of a model against BertViz: size, time to write, time until it is drawn.

    python benchmarks/pages.py [--json] [--quick]

Both get the same weights: 12 layers × 12 heads, causal, softmax of random scores, which compress
worse than those of a trained model. Both write one HTML file, BertViz with `model_view`. Each is
opened in Chromium without network; the time is from the start of the navigation to the first
drawing of all heads, by the page's own clock. BertViz's page needs scripts from the network:
without them nothing is drawn.
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
DRAW_TIMEOUT_SECONDS = 20
IS_DRAWN = {
    "ours": "performance.getEntriesByName('neural heads drawn').length > 0",
    "BertViz": "document.querySelectorAll('svg line, svg path, svg rect').length > 0",
}
DRAWN_AT = """(() => {
  const [one] = performance.getEntriesByName('neural heads drawn')
  return one ? one.startTime + one.duration : performance.now()
})()"""


def create_weights(n: int) -> list[torch.Tensor]:
    """Causal weights of each layer, (1, H, n, n)."""
    scores = torch.randn(LAYERS, 1, HEADS, n, n, generator=torch.Generator().manual_seed(0)) * 2
    return list(
        scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    )


def write_ours(layers: list[torch.Tensor], tokens: list[str]) -> str:
    """The page of `neural debug -o`."""
    from neural.report.html_page import render_page
    from tests.map_pages import build_maps_page

    maps: dict[str, np.ndarray | bytes] = {
        f"layer.{number}": layer[0].numpy() for number, layer in enumerate(layers)
    }
    return render_page(build_maps_page("all heads", maps, keys=tokens, causal=True), "all heads")


def write_bertviz(layers: list[torch.Tensor], tokens: list[str]) -> str:
    """BertViz's model view."""
    from bertviz import model_view

    return model_view(layers, tokens, html_action="return").data


WRITERS: dict[str, Callable[[list[torch.Tensor], list[str]], str]] = {
    "ours": write_ours,
    "BertViz": write_bertviz,
}


def measure_pages(*, quick: bool) -> dict[str, Any]:
    """Size, seconds to write and milliseconds until drawn (None if it is not), by n and writer."""
    from playwright.sync_api import sync_playwright

    from neural.report.pdf_export import find_browser

    sizes: dict[int, dict[str, Any]] = {}
    for write in WRITERS.values():  # imports do not count
        write(create_weights(2), ["a", "b"])
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        chromium = driver.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        for n in SIZES[:1] if quick else SIZES:
            layers, tokens = create_weights(n), [f"t{position}" for position in range(n)]
            sizes[n] = {}
            for name, write in WRITERS.items():
                start = time.perf_counter()
                file = Path(folder) / f"{name}-{n}.html"
                file.write_text(write(layers, tokens), encoding="utf-8")
                seconds = time.perf_counter() - start
                milliseconds, requests = open_page(chromium, file, IS_DRAWN[name])
                sizes[n][name] = {
                    "megabytes": file.stat().st_size / 1e6,
                    "seconds to write": seconds,
                    "milliseconds to the first picture": milliseconds,
                    "requests": requests,
                }
        chromium.close()
    ratios = {
        f"size, BertViz / ours, n = {n}": figures["BertViz"]["megabytes"]
        / figures["ours"]["megabytes"]
        for n, figures in sizes.items()
    }
    return {"sizes": sizes, "ratios": ratios}


def open_page(chromium: Any, file: Path, is_drawn: str) -> tuple[float | None, int]:
    """Milliseconds until a page is drawn, and its number of network requests."""
    context = chromium.new_context(offline=True)
    page = context.new_page()
    urls: list[str] = []
    page.on(
        "request",
        lambda request: urls.append(request.url) if request.url.startswith("http") else None,
    )
    try:
        page.goto(file.as_uri(), timeout=DRAW_TIMEOUT_SECONDS * 10_000)
        deadline = time.monotonic() + DRAW_TIMEOUT_SECONDS
        # wait_for_function would use eval, which our page's content security policy forbids
        while not page.evaluate(is_drawn):
            if time.monotonic() > deadline:
                return None, len(urls)
            page.wait_for_timeout(5)
        return page.evaluate(DRAWN_AT), len(urls)
    finally:
        context.close()


def print_pages(results: dict[str, Any]) -> None:
    """Print the figures of the pages as a table."""
    print(f"one page of {LAYERS} × {HEADS} heads, opened offline")
    print("     n            size     written   first picture")
    for n, writers in results["sizes"].items():
        for name, figures in writers.items():
            milliseconds = figures["milliseconds to the first picture"]
            drawn = (
                f"{milliseconds:8.0f} ms"
                if milliseconds is not None
                else f"never: {figures['requests']} network request(s)"
            )
            size, seconds = figures["megabytes"], figures["seconds to write"]
            print(f"  {n:4} {name:8} {size:7.2f} MB {seconds:8.2f} s   {drawn}")
    for name, value in results["ratios"].items():
        print(f"  {name:42} {value:9.3g}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="n = 64 only")
    options = parser.parse_args()
    results = measure_pages(quick=options.quick)
    if options.json:
        print(json.dumps({**results, "goals": GOALS}, indent=2))
    else:
        print_pages(results)


if __name__ == "__main__":
    main()
