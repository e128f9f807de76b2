"""The comparison of focus paradigms in a real Chromium: dots, claims, and mosaics over the steps."""

import re

import numpy as np
import pytest

from neural.report.run_report import write_run_page
from neural.runs.run import Run
from tests.focus_runs import CLASSES, EXAMPLE_COUNT, STEPS, create_weights, write_sweep

PARADIGMS = {"soft": "soft", "hard": "hard", "lvml": "LVML"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """The runs of three paradigms with five seeds, and the address of their report."""
    root = tmp_path_factory.mktemp("sweep")
    paths = write_sweep(root)
    return paths, write_run_page(paths, root / "report.html").as_uri()


def read_weights(tab):
    """Weights on the page by mosaic, row and tile."""
    return tab.evaluate(
        """[...document.querySelectorAll('.mosaics .mosaic')].map(mosaic =>
            [...mosaic.querySelectorAll('.mosaic-row')].map(row =>
                [...row.querySelectorAll('.tile')].map(tile => Number(tile.dataset.weight))))"""
    )


def read_indices(tab):
    """Numbers of the examples that are shown."""
    titles = tab.locator(".mosaic-card h3").all_inner_texts()
    return [int(re.search(r"example (\d+)", title)[1]) for title in titles]


def check_weights(tab, seed, step):
    """Whether all weights on the page are those that were recorded at a step."""
    tab.locator(f"[data-step='{step}']").wait_for()
    shown, indices = np.array(read_weights(tab)), read_indices(tab)
    assert shown.shape == (6, 3, 5)
    for row, paradigm in enumerate(PARADIGMS):
        expected = create_weights(paradigm, seed, step)[indices]
        np.testing.assert_allclose(shown[:, row], expected, atol=0.003)


def test_the_headline_leads_to_the_focus(tab, sweep):
    _, address = sweep
    tab.goto(address)
    tab.get_by_text("LVML finds the right picture most surely: SAIF .89").first.wait_for()
    assert tab.locator("main .mosaic .mosaic-row").count() == 3
    tab.get_by_text("focus, claims and curves").first.click()
    tab.locator(".dot-plot").first.wait_for()
    assert tab.evaluate("location.hash").startswith("#/focus")


def test_dots_are_the_means_over_seeds(tab, sweep):
    paths, address = sweep
    tab.goto(f"{address}#/focus")
    tab.locator("[data-score='saif'] .mean").first.wait_for()
    for score in ("saif", "accuracy", "focus_confidence"):
        for paradigm in PARADIGMS:
            values = [
                run.scalars(f"valid/{score}")[1][-1]
                for run in map(Run.open, paths)
                if run.settings["paradigm"] == paradigm
            ]
            dot = tab.locator(f"[data-score='{score}'] [data-paradigm='{paradigm}']")
            assert float(dot.get_attribute("data-value")) == pytest.approx(np.mean(values))
    # the order of the dots on the screen is that of the means
    positions = tab.evaluate(
        """[...document.querySelectorAll("[data-score='saif'] .mean")]
            .map(dot => dot.getBoundingClientRect().x)"""
    )
    assert positions == sorted(positions) and len(set(positions)) == 3


def test_claims_are_listed_with_verdicts(tab, sweep):
    _, address = sweep
    tab.goto(f"{address}#/focus")
    supported = tab.locator(".claim", has_text="hard ends above soft")
    assert supported.locator(".verdict").inner_text() == "supported"
    assert supported.locator(".against-zero").count() == 1
    undecided = tab.locator(".undecided-claims")
    assert "soft starts fast" in undecided.inner_text()
    assert "hard ends above soft" not in undecided.inner_text()


def test_mosaics_show_the_recorded_weights_at_the_step_of_the_slider(tab, sweep):
    _, address = sweep
    tab.goto(f"{address}#/focus")
    check_weights(tab, seed=0, step=STEPS[-1])
    assert read_indices(tab)[0] == 3, "the example on which the paradigms differ most is first"
    tab.keyboard.press("ArrowLeft")
    check_weights(tab, seed=0, step=STEPS[-2])
    slider = tab.locator("input[type=range][aria-label=step]")
    slider.fill("0")
    check_weights(tab, seed=0, step=STEPS[0])
    assert tab.locator(".slider output").inner_text().startswith("step 0")


def test_tiles_are_redrawn_and_brighter_with_more_focus(tab, sweep):
    _, address = sweep
    # a copy: the browser warns of a canvas that is read repeatedly and was not created for it
    read_brightness = """[...document.querySelectorAll('.mosaics .mosaic-row')[2]
        .querySelectorAll('canvas')].map(canvas => {
            const {width, height} = canvas
            const copy = new OffscreenCanvas(width, height)
            const context = copy.getContext('2d', {willReadFrequently: true})
            context.drawImage(canvas, 0, 0)
            return context.getImageData(0, 0, width, height).data
                .filter((_, index) => index % 4 === 0).reduce((sum, value) => sum + value, 0)
        })"""
    tab.goto(f"{address}#/focus?step={STEPS[0]}")
    tab.locator(f"[data-step='{STEPS[0]}']").wait_for()
    before = tab.evaluate(read_brightness)
    tab.goto(f"{address}#/focus?step={STEPS[-1]}")
    tab.locator(f"[data-step='{STEPS[-1]}']").wait_for()
    after = tab.evaluate(read_brightness)
    # LVML on example 3, whose foreground is tile 3, moves all its focus there
    assert after[3] > before[3]
    assert all(after[tile] < before[tile] for tile in (0, 1, 2, 4))


def test_another_seed_has_its_own_weights(tab, sweep):
    _, address = sweep
    tab.goto(f"{address}#/focus")
    tab.get_by_label("seed", exact=True).select_option("3")
    tab.wait_for_function("() => location.hash.includes('seed=3')")
    check_weights(tab, seed=3, step=STEPS[-1])


def test_the_foreground_is_framed_and_predictions_are_marked(tab, sweep):
    _, address = sweep
    tab.goto(f"{address}#/focus")
    tab.locator(".mosaic-card").first.wait_for()
    for card, index in enumerate(read_indices(tab)):
        rows = tab.locator(".mosaic-card").nth(card).locator(".mosaic-row")
        frames = rows.first.locator(".tile").evaluate_all(
            "tiles => tiles.map(tile => tile.classList.contains('foreground'))"
        )
        assert frames == [position == index % 5 for position in range(5)]
        predicted = rows.locator("[data-predicted]").evaluate_all(
            "labels => labels.map(label => [label.dataset.predicted, label.className])"
        )
        for (name, mark), classes in zip(predicted, (2, 3, 3), strict=True):
            assert name == CLASSES[index % classes]
            assert mark == ("yes" if index % classes == index % 3 else "no")
    assert max(read_indices(tab)) < EXAMPLE_COUNT


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_is_cut_at_any_width(tab, sweep, width):
    _, address = sweep
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(f"{address}#/focus")
    tab.locator(".mosaic-card").first.wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    outside = tab.evaluate(
        """[...document.querySelectorAll('.tile, .mosaic-label, .dot-plot text, .against-zero text')]
            .filter(element => {
                const box = element.getBoundingClientRect()
                return box.left < 0 || box.right > innerWidth
            }).length"""
    )
    assert outside == 0
    sizes = tab.locator(".mosaic-label, .tile small, .dot-plot text").evaluate_all(
        "elements => elements.map(element => parseFloat(getComputedStyle(element).fontSize))"
    )
    assert min(sizes) >= 10


def test_runs_that_recorded_nothing_still_have_scores(tab, tmp_path):
    paths = write_sweep(tmp_path, seeds=1, recorded=False)
    tab.goto(f"{write_run_page(paths, tmp_path / 'report.html').as_uri()}#/focus")
    tab.locator("[data-score='saif'] .mean").first.wait_for()
    tab.get_by_text("These runs recorded no examples.").wait_for()
    assert tab.locator(".slider").count() == 0
    assert "a verdict needs 5 seeds, has 1" in tab.locator(".focus-intro").inner_text()
