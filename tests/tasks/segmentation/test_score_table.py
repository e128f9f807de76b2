"""Score table: every score of every segmenter, and the lift over the best baseline."""

import json
import math

import numpy as np
import pytest

from neural.tasks.segmentation.boundary_encoding import lengths_to_boundaries
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.score_table import compute_scores, run_baselines, score_segmenters

TRUTHS = [
    lengths_to_boundaries(lengths)
    for lengths in ([3, 4, 5], [6, 6], [4, 4, 4], [2, 7, 3], [5, 5, 2])
]
PREDICTIONS = [
    lengths_to_boundaries(lengths)
    for lengths in ([3, 5, 4], [6, 6], [4, 4, 4], [2, 7, 3], [5, 4, 3])
]
NOTHING = [np.zeros(12, bool)] * 5
WORSE = [lengths_to_boundaries([1] * 12)] * 5
WORSE_OF_20 = [lengths_to_boundaries([1 + index % 3, 19 - index % 3]) for index in range(30)]


def test_the_model_is_scored_beside_every_baseline():
    table = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"nothing": NOTHING, "worse": WORSE}, resamples=200
    )
    assert list(table.rows) == ["model", "nothing", "worse"]
    pk = table.rows["model"]["pk"]
    assert pk.value == pytest.approx(
        np.mean([Pk().score(*pair) for pair in zip(TRUTHS, PREDICTIONS, strict=True)])
    )
    assert pk.low <= pk.value <= pk.high
    assert "label_f1" not in table.rows["model"]


def test_a_lift_is_over_the_best_baseline_and_positive_when_better():
    table = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"nothing": NOTHING, "worse": WORSE}, resamples=200
    )
    for score, direction in table.better.items():
        values = {name: table.rows[name][score].value for name in ("nothing", "worse")}
        best = (min if direction == "low" else max)(values, key=values.__getitem__)
        lift = table.lifts[score]
        assert lift.baseline == best
        assert lift.difference.value == pytest.approx(
            abs(table.rows["model"][score].value - values[best])
        )
        assert lift.difference.value > 0
    pk = table.lifts["pk"]
    assert pk.relative.value == pytest.approx(
        pk.difference.value / table.rows[pk.baseline]["pk"].value
    )


def test_a_model_equal_to_its_baseline_has_no_lift_and_no_interval():
    lift = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"itself": PREDICTIONS}, resamples=200
    ).lifts["pk"]
    assert lift.difference.value == 0
    assert math.isnan(lift.difference.low)


def test_a_paired_interval_is_narrower_than_two_independent_ones():
    other = [*PREDICTIONS[:4], WORSE[4]]
    table = score_segmenters(TRUTHS, PREDICTIONS, baselines={"other": other}, resamples=500)
    intervals = [table.rows[name]["boundary_similarity"] for name in ("model", "other")]
    total_width = sum(interval.high - interval.low for interval in intervals)
    paired = table.lifts["boundary_similarity"].difference
    assert paired.high - paired.low <= total_width


def test_the_selection_of_the_best_baseline_widens_the_interval():
    """The best of several looks better than it is, so the true lift may be higher."""
    rng = np.random.default_rng(0)
    truths = [lengths_to_boundaries([4] * 5) for _ in range(30)]
    equal = {str(index): [truth ^ (rng.random(20) < 0.2) for truth in truths] for index in range(5)}
    model, *_ = equal.values()
    best = score_segmenters(truths, model, baselines=equal).lifts["pk"].baseline
    alone = (
        score_segmenters(truths, WORSE_OF_20, baselines={best: equal[best]}).lifts["pk"].difference
    )
    selected = score_segmenters(truths, WORSE_OF_20, baselines=equal).lifts["pk"].difference
    assert selected.value == alone.value
    assert selected.low == alone.low
    assert selected.high > alone.high + 0.002


def test_a_relative_lift_over_zero_is_nan():
    lift = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"nothing": NOTHING}, resamples=50
    ).lifts["boundary_f1"]
    assert lift.difference.value > 0
    assert math.isnan(lift.relative.value)


def test_the_same_seed_gives_the_same_table():
    baselines = {"nothing": NOTHING, "worse": WORSE, "nearly": [*PREDICTIONS[:4], WORSE[4]]}
    first, second = (
        score_segmenters(TRUTHS, PREDICTIONS, baselines=baselines, resamples=100, seed=1).lifts
        for _ in range(2)
    )
    assert str(first) == str(second)


def test_labels_are_scored_if_they_are_known():
    labels = (
        [np.cumsum(boundaries) for boundaries in TRUTHS],
        [np.cumsum(boundaries) for boundaries in PREDICTIONS],
    )
    table = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"nothing": NOTHING}, labels=labels, resamples=50
    )
    assert 0 < table.rows["model"]["label_f1"].value < 1
    assert "label_f1" not in table.rows["nothing"]
    assert "label_f1" not in table.lifts
    assert (
        compute_scores(TRUTHS, PREDICTIONS, labels=labels)["label_f1"]
        == table.rows["model"]["label_f1"].value
    )


def test_scores_without_intervals_are_the_values_of_the_table():
    table = score_segmenters(TRUTHS, PREDICTIONS, resamples=50)
    assert compute_scores(TRUTHS, PREDICTIONS) == {
        score: interval.value for score, interval in table.rows["model"].items()
    }


def test_every_baseline_predicts_every_document():
    documents = [["one two", "two three", "four", "five"], ["single"]]
    predictions = run_baselines(documents, TRUTHS)
    assert {"nothing", "every_k", "c99"} <= set(predictions)
    for boundaries in predictions.values():
        assert list(map(len, boundaries)) == [4, 1]


def test_the_table_is_text_and_json():
    table = score_segmenters(
        TRUTHS, PREDICTIONS, baselines={"nothing": NOTHING}, name="ours", resamples=50
    )
    text = str(table)
    assert "ours" in text and "nothing" in text and "low is better" in text
    assert "95 % intervals by jackknife over 5 documents" in text
    assert "the best baseline is selected again in 50 resamples (seed 0)" in text
    assert (
        json.loads(json.dumps(table.to_dict()))["rows"]["ours"]["pk"]["value"]
        == table.rows["ours"]["pk"].value
    )


def test_one_document_has_no_interval():
    assert math.isnan(
        score_segmenters(TRUTHS[:1], PREDICTIONS[:1], resamples=20).rows["model"]["pk"].low
    )


def test_predictions_for_other_documents_are_refused():
    with pytest.raises(ValueError, match="no documents"):
        score_segmenters([], [])
    with pytest.raises(ValueError, match="5 documents, but worse has predictions for 4"):
        score_segmenters(TRUTHS, PREDICTIONS, baselines={"worse": WORSE[:4]}, resamples=20)
