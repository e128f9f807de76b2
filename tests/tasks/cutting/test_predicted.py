"""From scores to P(a part begins here)."""

import numpy as np
import pytest
import torch

from neural.modules.attention.self import Self
from neural.modules.segmenter import LookAround, Segmenter
from neural.tasks.cutting.predicted import boundary_probabilities, class_probabilities, scores_of, threshold_for


def test_every_document_gets_its_own_scores_whatever_goes_along():
    torch.manual_seed(0)
    model = Segmenter(3, 2, hidden_dim=4, num_layers=1, attention=LookAround(8, 6, 2, Self())).eval()
    inputs = [np.random.default_rng(one).normal(size=(length, 3)) for one, length in enumerate((5, 1, 12, 5))]
    together = scores_of(model, inputs)
    assert [one.shape for one in together] == [(5, 2), (1, 2), (12, 2), (5, 2)]
    for few in (1, 12):
        for one, other in zip(together, scores_of(model, inputs, at_once=few), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_boundaries_that_are_learned_are_the_second_class():
    classes = class_probabilities(np.array([[0.0, 5.0], [0.0, np.log(3)], [1000.0, 0.0]]))
    np.testing.assert_allclose(boundary_probabilities(classes, "boundaries"), [0, 0.75, 0], atol=1e-12)


def test_labels_change_where_they_differ_when_drawn_apart():
    classes = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 0.8]])
    np.testing.assert_allclose(boundary_probabilities(classes, "labels"), [0, 0.5, 0.9])


def test_of_two_labels_one_half_is_where_the_likelier_one_changes():
    random = np.random.default_rng(0)
    classes = class_probabilities(random.normal(size=(500, 2)))
    change = np.r_[False, np.diff(classes.argmax(axis=1)) != 0]
    np.testing.assert_array_equal(boundary_probabilities(classes, "labels") > 0.5, change)


@pytest.mark.parametrize("learned", ["boundaries", "labels"])
def test_no_part_begins_at_a_single_element(learned):
    assert boundary_probabilities(np.array([[0.1, 0.9]]), learned).tolist() == [0]


def test_a_threshold_gives_as_many_parts_as_are_usual_whatever_the_probabilities_mean():
    random = np.random.default_rng(0)
    for scale in (1.0, 1e-3):
        documents = [np.r_[0.0, random.random(50)] * scale for _ in range(4)]
        threshold = threshold_for(documents, 0.1)
        assert sum(int((one > threshold).sum()) for one in documents) == 20


@pytest.mark.parametrize(("documents", "rate", "wanted"), [
    ([], 0.1, 0.5), ([np.array([0.0])], 0.1, 0.5), ([np.array([0.0, 0.4])], 0.1, 0.2),
    ([np.array([0.0, 0.4, 0.2])], 0.0, 0.3), ([np.array([0.0, 0.0])], 1.0, 1e-9),
])  # fmt: skip
def test_a_threshold_is_always_one(documents, rate, wanted):
    assert threshold_for(documents, rate) == pytest.approx(wanted)
