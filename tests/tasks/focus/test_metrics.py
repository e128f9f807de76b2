"""Metrics of focus models against values counted by hand."""

import numpy as np
import pytest

from neural.tasks.focus.metrics import (
    FocusPredictions,
    compute_cells,
    compute_heatmap,
    compute_saif,
    compute_scores,
)


def create_predictions(**changes):
    arrays = {
        "label": np.array([0, 0, 1, 1]),
        "predicted": np.array([0, 1, 1, 1]),
        "likelihood": np.array([0.9, 0.1, 0.85, 0.7]),
        "confidence": np.array([0.9, 0.9, 0.85, 0.7]),
        "argmax_predicted": np.array([0, 0, 1, 0]),
        "max_focus": np.array([0.95, 0.6, 0.9, 0.5]),
        "entropy": np.array([0.1, 0.9, 0.3, 1.0]),
        "foreground_mass": np.array([0.95, 0.6, 0.05, 0.5]),
        "focus_correct": np.array([True, True, False, True]),
    }
    return FocusPredictions(**{**arrays, **changes})


def test_the_scores_equal_values_counted_by_hand():
    scores = compute_scores(create_predictions(), 0.8)
    assert scores["accuracy"] == 0.75
    assert scores["accuracy_argmax"] == 0.75
    assert scores["focus_accuracy"] == 0.75
    assert scores["saif"] == 0.25, (
        "only the first has both above 0.8; the focus of the third is on the wrong segment"
    )
    assert scores["focus_accuracy_class_0"] == 1.0
    assert scores["focus_accuracy_class_1"] == 0.5
    assert scores["loss"] == pytest.approx(-np.log([0.9, 0.1, 0.85, 0.7]).mean())


def test_a_lower_threshold_gives_a_larger_saif():
    assert [compute_saif(create_predictions(), threshold) for threshold in (0.8, 0.55, 0.4)] == [
        0.25,
        0.25,
        0.5,
    ]


def test_the_four_cells_sum_to_one():
    assert compute_cells(create_predictions()) == [0.5, 0.25, 0.25, 0.0]


def test_the_heat_map_clips_values_to_the_unit_square():
    scores = compute_heatmap(
        create_predictions(
            foreground_mass=np.full(4, 0.5), likelihood=np.array([0.0, 1.0, 1.0 + 1e-7, 0.49])
        ),
        bins=2,
    )
    np.testing.assert_allclose(scores, [[0, 0], [0.5, 0.5]])


def test_without_a_foreground_there_are_no_focus_metrics():
    scores = compute_scores(create_predictions(foreground_mass=None, focus_correct=None), 0.8)
    assert "saif" not in scores
    assert "accuracy" in scores
    assert compute_heatmap(create_predictions(foreground_mass=None)).sum() == 0
