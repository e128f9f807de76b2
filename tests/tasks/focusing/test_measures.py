"""Measures of focus models against counts by hand."""

import numpy as np
import pytest

from neural.tasks.focusing.measures import Judged, cells, heat, saif, scores


def judged(**changes):
    made = {
        "label": np.array([0, 0, 1, 1]), "predicted": np.array([0, 1, 1, 1]),
        "likelihood": np.array([0.9, 0.1, 0.85, 0.7]), "confidence": np.array([0.9, 0.9, 0.85, 0.7]),
        "by_focus": np.array([0, 0, 1, 0]), "largest": np.array([0.95, 0.6, 0.9, 0.5]),
        "entropy": np.array([0.1, 0.9, 0.3, 1.0]), "mass": np.array([0.95, 0.6, 0.05, 0.5]),
        "found": np.array([True, True, False, True]),
    }  # fmt: skip
    return Judged(**{**made, **changes})


def test_the_scores_are_what_a_hand_counts():
    found = scores(judged(), 0.8)
    assert found["accuracy"] == 0.75
    assert found["accuracy_argmax"] == 0.75
    assert found["focus_accuracy"] == 0.75
    assert found["saif"] == 0.25, "the first alone has both above 0.8; the third looked at the wrong segment"
    assert found["focus_accuracy_class_0"] == 1.0
    assert found["focus_accuracy_class_1"] == 0.5
    assert found["loss"] == pytest.approx(-np.log([0.9, 0.1, 0.85, 0.7]).mean())


def test_a_lower_threshold_counts_more():
    assert [saif(judged(), t) for t in (0.8, 0.55, 0.4)] == [0.25, 0.25, 0.5]


def test_the_four_cells_sum_to_one_and_say_who_was_right():
    assert cells(judged()) == [0.5, 0.25, 0.25, 0.0]


def test_the_heat_map_lies_over_the_unit_square_whatever_the_data_are():
    found = heat(judged(mass=np.full(4, 0.5), likelihood=np.array([0.0, 1.0, 1.0 + 1e-7, 0.49])), bins=2)
    np.testing.assert_allclose(found, [[0, 0], [0.5, 0.5]])


def test_without_a_foreground_nothing_is_said_about_it():
    found = scores(judged(mass=None, found=None), 0.8)
    assert "saif" not in found
    assert "accuracy" in found
    assert heat(judged(mass=None)).sum() == 0
