"""Reports in Chromium: size, first paint, time of the step slider, and a report of 200 runs.

    python benchmarks/report_pages.py [--json] [--quick]

Three pages, opened offline, five times each; the figures are medians by the page's own clock:

    one run      6 layers × 6 heads, 64 positions, 24 snapshots: the slider redraws 36 maps
    capture      12 layers × 12 heads, 256 positions, random weights
    200 runs     40 experiments with 5 seeds each, 2 × 2 heads

The figures of a page are its size, the time to its first contentful paint, the time until its first
view is complete, and, for the 200 runs, the time to open each tab.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from pages import create_weights, write_ours

from neural.report.pdf_export import find_browser
from neural.report.run_report import write_run_page

sys.path.append(str(Path(__file__).parents[1]))
from tests.report_runs import write_run

GOALS = {
    "one run: first paint, ms": 300.0,
    "one run: slider, 36 maps, ms": 16.0,
    "capture: 12 × 12 heads, n = 256, MB": 5.0,
}
SLIDER_STEPS = 23
EXPERIMENTS, SEEDS = 40, 5
BUNDLE_FILES = ("neural.js", "neural.css", "widget.js")


def write_pages(folder: Path, *, quick: bool) -> dict[str, Path]:
    """The pages by name."""
    run = write_run(folder, positions=64, snapshots=SLIDER_STEPS + 1)
    pages = {"one run": write_run_page([run], folder / "one.html")}
    pages["capture"] = folder / "capture.html"
    pages["capture"].write_text(
        write_ours(create_weights(256), [f"t{position}" for position in range(256)]),
        encoding="utf-8",
    )
    count = 4 if quick else EXPERIMENTS
    runs = [
        # another length of training, so that they are different experiments
        write_run(folder, f"network-{number}", layers=2, heads=2, snapshots=2 + number, seed=seed)
        for number in range(count)
        for seed in range(SEEDS)
    ]
    pages[f"{len(runs)} runs"] = write_run_page(runs, folder / "many.html")
    return pages


def open_page(chromium: Any, page: Path) -> tuple[Any, Any, dict[str, float]]:
    """Context, tab and times of a page: first contentful paint, and the first view complete."""
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.locator("main > *:visible").first.wait_for()
    tab.wait_for_timeout(100)
    times = tab.evaluate("""() => ({
        paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
        complete: performance.getEntriesByType('navigation')[0].loadEventEnd,
    })""")
    return context, tab, times


def measure_slider(tab: Any) -> list[float]:
    """Milliseconds of every redrawing of all heads, over the whole slider."""
    tab.evaluate("location.hash = '#/attention?step=0'")
    tab.locator(".heads canvas").first.wait_for()
    tab.wait_for_timeout(200)
    for _ in range(SLIDER_STEPS):
        tab.keyboard.press("ArrowRight")
        tab.wait_for_timeout(60)
    return tab.evaluate("""performance.getEntriesByName('neural heads drawn')
        .map(entry => entry.duration)""")[1:]


def measure_tabs(tab: Any) -> dict[str, float]:
    """Milliseconds from a click on a tab until two frames later, by name."""
    return {
        name: tab.evaluate(
            """async (name) => {
                const button = [...document.querySelectorAll('nav button')]
                    .find(button => button.textContent.trim() === name)
                const start = performance.now()
                button.click()
                await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
                return performance.now() - start
            }""",
            name,
        )
        for name in map(str.strip, tab.locator("nav button").all_inner_texts())
    }


def measure(*, quick: bool) -> dict[str, Any]:
    """All figures."""
    from playwright.sync_api import sync_playwright

    import neural.report.html_page as html_page

    repeats = 2 if quick else 5
    ratios: dict[str, float] = {}
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        pages = write_pages(Path(folder), quick=quick)
        chromium = driver.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        open_page(chromium, pages["one run"])[0].close()  # the browser's own start does not count
        for name, page in pages.items():
            paints, completes, slider, tabs = [], [], [], {}
            for _ in range(repeats):
                context, tab, times = open_page(chromium, page)
                paints.append(times["paint"])
                completes.append(times["complete"])
                if name == "one run":
                    slider += measure_slider(tab)
                elif name.endswith(" runs"):
                    tabs = measure_tabs(tab)
                context.close()
            size = "12 × 12 heads, n = 256, MB" if name == "capture" else "size, MB"
            ratios[f"{name}: {size}"] = page.stat().st_size / 1e6
            ratios[f"{name}: first paint, ms"] = statistics.median(paints)
            ratios[f"{name}: loaded, ms"] = statistics.median(completes)
            if slider:
                ratios[f"{name}: slider, 36 maps, ms"] = statistics.median(slider)
                ratios[f"{name}: slider, slowest of {len(slider)}, ms"] = max(slider)
            for title, milliseconds in tabs.items():
                ratios[f"{name}: open {title}, ms"] = milliseconds
        chromium.close()
    for name in BUNDLE_FILES:
        ratios[f"bundle: {name}, kB"] = (html_page.BUNDLE_DIR / name).stat().st_size / 1e3
    return {"ratios": ratios}


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="20 runs, fewer repeats")
    options = parser.parse_args()
    results = measure(quick=options.quick)
    if options.json:
        print(json.dumps({**results, "goals": GOALS}, indent=2))
        return
    for name, value in results["ratios"].items():
        print(f"  {name:44} {value:9.3g}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


if __name__ == "__main__":
    main()
