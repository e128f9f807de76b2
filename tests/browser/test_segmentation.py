"""Segmentation, calibration and samples in a browser."""

import base64
import json

import numpy as np
import pytest

from neural.report.run_report import write_run_page
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.metrics import registry as metrics
from tests.report_runs import NASTY, score_boundaries, write_run, write_segmentation_run


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A calibrated segmenter, and another one of the same documents."""
    root = tmp_path_factory.mktemp("runs")
    first = write_segmentation_run(root, quality=2.0, calibrated=True, nasty=True)
    second = write_segmentation_run(root, "other", quality=6.0, nasty=True, attention=None)
    return write_run_page([first, second], root / "report.html").as_uri()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A language model with eight samples."""
    root = tmp_path_factory.mktemp("runs")
    path = write_run(root, layers=1, heads=1, positions=5, snapshots=8)
    return write_run_page([path], root / "report.html").as_uri()


def read_page_data(tab):
    """The held-out documents in the page: true boundaries, and probabilities by method."""
    data = json.loads(tab.locator("#neural-data").text_content())
    segmentation = data["runs"][0]["segmentation"]
    truths = [
        np.isin(np.arange(length), boundaries)
        for length, boundaries in zip(
            segmentation["lengths"], segmentation["boundaries"], strict=True
        )
    ]
    ends = np.cumsum(segmentation["lengths"])[:-1]
    predictions = [
        (np.split(np.frombuffer(base64.b64decode(entry["data"]), "<f4").astype(float), ends), entry)
        for entry in segmentation["predictions"]
    ]
    return truths, predictions


def read_score(tab, key, column="all documents"):
    return tab.locator(f'[data-score="{column}: {key}"]').inner_text()


def set_threshold(tab, threshold):
    tab.locator("input[aria-label=threshold]").fill(str(threshold))
    tab.locator("output[aria-label=threshold]", has_text=f"{threshold:.3f}").wait_for()


def read_cuts(tab):
    """Element → kind of the boundary before it."""
    return dict(
        tab.evaluate(
            "[...document.querySelectorAll('[data-cut]')]"
            ".map(item => [Number(item.dataset.element), item.dataset.cut])"
        )
    )


def test_the_threshold_changes_the_cuts_and_scores_are_those_of_the_metrics(tab, report):
    tab.goto(f"{report}#/segmentation")
    tab.locator(".elements").wait_for()
    truths, predictions = read_page_data(tab)
    documents, entry = predictions[-1]
    assert entry["method"] != "none"
    seen_cuts, seen_scores = [], []
    for threshold in (0.05, 0.2, 0.35, 0.6, 0.9):
        set_threshold(tab, threshold)
        predicted = [decode_boundaries(p, threshold=threshold) for p in documents]
        f1 = score_boundaries(truths, documents, threshold)
        assert read_score(tab, "f1") == f"{f1:.3f}"
        own = score_boundaries(truths[:1], documents[:1], threshold)
        assert read_score(tab, "f1", "this document") == f"{own:.3f}"
        for name, key in (("pk", "pk"), ("window_diff", "windowDiff")):
            metric = metrics.get(name)()
            totals = metric.count_documents(truths, predicted).sum(axis=0)
            assert read_score(tab, key) == f"{float(metric.scores(totals)[name]):.3f}"
        cuts = read_cuts(tab)
        shown = {element for element, kind in cuts.items() if kind != "missed"}
        assert set(np.flatnonzero(predicted[0]).tolist()) <= shown
        assert set(cuts) == set(np.flatnonzero(predicted[0] | truths[0]).tolist())
        seen_cuts.append(cuts)
        seen_scores.append(read_score(tab, "f1"))
    assert seen_cuts[0] != seen_cuts[2] != seen_cuts[-1]
    assert len(set(seen_scores)) > 2


def test_reset_returns_to_the_stored_threshold(tab, report):
    tab.goto(f"{report}#/segmentation?threshold=0.050")
    tab.locator("output", has_text="0.050").wait_for()
    _, predictions = read_page_data(tab)
    stored = predictions[-1][1]["threshold"]
    tab.get_by_role("button", name="reset").click()
    tab.locator("output", has_text=f"{stored:.3f}").wait_for()
    assert read_score(tab, "f1") == read_score(tab, "f1", "at the stored threshold")
    assert tab.get_by_role("button", name="reset").is_disabled()
    assert f"stored: {stored:.3f}" in tab.locator(".stored-text").inner_text()


def test_near_misses_hits_and_errors_are_marked(tab, report):
    tab.goto(f"{report}#/segmentation")
    tab.locator(".elements").wait_for()
    truths, predictions = read_page_data(tab)
    kinds = set()
    for threshold in np.arange(0.05, 0.95, 0.05).round(3):
        set_threshold(tab, threshold)
        predicted = decode_boundaries(predictions[-1][0][0], threshold=threshold)
        for element, kind in read_cuts(tab).items():
            kinds.add(kind)
            assert (kind == "hit") == (truths[0][element] and predicted[element])
            if kind == "near miss":
                other = predicted & ~truths[0] if truths[0][element] else truths[0] & ~predicted
                assert other[max(0, element - 2) : element + 3].any(), (threshold, element)
            if kind == "false alarm":
                assert predicted[element]
                assert not truths[0][element]
    assert kinds == {"hit", "near miss", "missed", "false alarm"}


def test_documents_and_probabilities_can_be_chosen(tab, report):
    tab.goto(f"{report}#/segmentation")
    tab.get_by_role("button", name="next document").click()
    tab.get_by_text("Held-out document 2 of 3").wait_for()
    tab.get_by_label("uncalibrated").check()
    tab.locator("output", has_text="0.400").wait_for()
    _, predictions = read_page_data(tab)
    probabilities = predictions[0][0][1]
    shown = tab.locator(".element .probability:not(:empty)").all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(probabilities[1:], abs=0.0051)
    tab.wait_for_function("() => location.hash.includes('document=2')")
    assert tab.locator("li[data-element='1'] .element-text").inner_text() == NASTY


def test_a_run_with_the_same_documents_shows_them_with_its_own_predictions(tab, report):
    tab.goto(f"{report}#/segmentation")
    tab.locator(".elements").wait_for()
    data = json.loads(tab.locator("#neural-data").text_content())
    first, second = data["runs"]
    assert second["segmentation"]["documents_of"] == first["id"]
    scores = read_score(tab, "f1")
    tab.goto(f"{report}#/segmentation?run={second['id']}")
    tab.locator("output", has_text="0.400").wait_for()
    assert tab.locator("li[data-element='1'] .element-text").inner_text() == NASTY
    best = max(second["scalars"]["valid/f1"]["values"])
    assert read_score(tab, "f1") == f"{best:.3f}" != scores


def test_reliability_has_points_with_equal_counts_and_no_joining_line(tab, report):
    tab.goto(f"{report}#/calibration")
    tab.locator("svg.reliability").wait_for()
    assert tab.locator("svg.reliability polyline, svg.reliability path").count() == 0
    data = json.loads(tab.locator("#neural-data").text_content())
    diagrams = data["runs"][0]["calibration"]["questions"]["boundary"]["diagrams"]
    assert len(diagrams) == 2
    # calibrated probabilities may be equal, and equal ones are in one bin
    counts = diagrams["none"]["counts"]
    assert len(counts) == 15
    assert max(counts) - min(counts) <= 1
    points = sum(len(diagram["counts"]) for diagram in diagrams.values())
    assert tab.locator("svg.reliability circle").count() == points
    assert tab.locator(".reliability-point .interval").count() == points
    text = tab.locator("main").inner_text()
    for word in ("Reliability", "uncalibrated"):
        assert word in text
    axes = tab.locator("svg.reliability text.axis").all_text_contents()
    assert axes == ["predicted probability", "observed frequency"]
    assert "none" not in tab.locator("main table").inner_text()


def test_the_headline_shows_a_strip_of_a_document(tab, report):
    tab.goto(f"{report}#/overview")
    tab.locator(".text-strip").wait_for()
    assert tab.locator(".text-strip li").count() == 6
    assert tab.locator(".text-strip li .mark", has_text="hit").count() >= 1
    assert tab.get_by_text("Finds boundaries with F1").count() == 1


def test_samples_of_several_steps_are_visible_at_once(tab, samples):
    tab.goto(f"{samples}#/samples?step=50")
    tab.locator(".sample-columns").wait_for()
    texts = tab.locator(".sample-columns pre").all_inner_texts()
    assert [text.strip() for text in texts] == ["text 0", "text 3", "text 5", "text 7"]
    boxes = [box.bounding_box() for box in tab.locator(".sample-columns > section").all()]
    assert len({box["y"] for box in boxes}) == 1
    assert len({box["x"] for box in boxes}) == 4
    tab.get_by_label("step of the first sample").select_option("10")
    tab.locator(".sample-columns pre", has_text="text 1").wait_for()
    tab.wait_for_function("() => location.hash.includes('samples=10')")
    headers = tab.locator(".sample-scores th").all_inner_texts()
    assert headers == ["", "step 10", "step 30", "step 50", "step 70", "real text"]
    row = tab.locator(".sample-scores tbody tr", has_text="bits").locator("td").all_inner_texts()
    assert row == ["bits", "2.90", "2.70", "2.50", "2.30", "1.50"]
    assert "6-gram" in tab.locator(".sample-scores abbr").first.get_attribute("title")


def test_the_slider_chooses_a_sample(tab, samples):
    tab.goto(f"{samples}#/samples?step=50")
    tab.locator(".sample-columns pre", has_text="text 5").wait_for()
    tab.locator(".slider input[type=range]").press("ArrowLeft")
    tab.locator(".sample-columns pre", has_text="text 4").wait_for()
    assert tab.locator(".sample-columns pre", has_text="text 5").count() == 0


def test_samples_that_are_all_shown_have_no_slider(tab, tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=5, snapshots=3)
    tab.goto(f"{write_run_page([path], tmp_path / 'report.html').as_uri()}#/samples?step=0")
    tab.locator(".sample-columns").wait_for()
    assert len(tab.locator(".sample-columns pre").all()) == 3
    assert tab.locator(".slider").count() == 0


def test_a_language_model_without_samples_says_how_to_get_them(tab, tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=5, snapshots=1, samples=False)
    tab.goto(f"{write_run_page([path], tmp_path / 'report.html').as_uri()}#/samples")
    tab.get_by_text("No samples").wait_for()
    assert "--samples" in tab.locator("main").inner_text()


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_is_wider_than_the_window(tab, report, width):
    tab.set_viewport_size({"width": width, "height": 900})
    for pane in ("segmentation", "calibration", "overview"):
        tab.goto(f"{report}#/{pane}")
        tab.locator("main section").first.wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, pane
