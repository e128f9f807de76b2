"""Logits of documents, boundary probabilities and thresholds."""

import numpy as np
import pytest
import torch

from neural.nn.attention.self import Self
from neural.tasks.segmentation.inference import (
    boundary_probabilities,
    choose_threshold,
    class_probabilities,
    compute_logits,
)
from neural.tasks.segmentation.model import AttentionBlock, Segmenter


def test_scores_do_not_depend_on_the_batch():
    torch.manual_seed(0)
    model = Segmenter(
        3, 2, hidden_dim=4, num_layers=1, attention=AttentionBlock(8, 6, 2, Self())
    ).eval()
    inputs = [
        np.random.default_rng(seed).normal(size=(length, 3))
        for seed, length in enumerate((5, 1, 12, 5))
    ]
    expected = compute_logits(model, inputs)
    assert [scores.shape for scores in expected] == [(5, 2), (1, 2), (12, 2), (5, 2)]
    for max_batch_elements in (1, 12):
        actual = compute_logits(model, inputs, max_batch_elements=max_batch_elements)
        for scores, expected_scores in zip(actual, expected, strict=True):
            np.testing.assert_allclose(scores, expected_scores, atol=1e-5)


def test_the_second_class_is_the_boundary():
    classes = class_probabilities(np.array([[0.0, 5.0], [0.0, np.log(3)], [1000.0, 0.0]]))
    np.testing.assert_allclose(
        boundary_probabilities(classes, "boundaries"), [0, 0.75, 0], atol=1e-12
    )


def test_a_label_change_is_the_probability_that_independent_labels_differ():
    classes = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 0.8]])
    np.testing.assert_allclose(boundary_probabilities(classes, "labels"), [0, 0.5, 0.9])


def test_of_two_labels_a_change_of_the_argmax_has_more_than_one_half():
    rng = np.random.default_rng(0)
    classes = class_probabilities(rng.normal(size=(500, 2)))
    change = np.r_[False, np.diff(classes.argmax(axis=1)) != 0]
    np.testing.assert_array_equal(boundary_probabilities(classes, "labels") > 0.5, change)


@pytest.mark.parametrize("target_kind", ["boundaries", "labels"])
def test_a_single_element_is_no_boundary(target_kind):
    assert boundary_probabilities(np.array([[0.1, 0.9]]), target_kind).tolist() == [0]


def test_a_threshold_gives_the_boundary_rate_for_any_scale_of_probabilities():
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-3):
        documents = [np.r_[0.0, rng.random(50)] * scale for _ in range(4)]
        threshold = choose_threshold(documents, 0.1)
        assert sum(int((p > threshold).sum()) for p in documents) == 20


@pytest.mark.parametrize(
    ("documents", "rate", "expected"),
    [
        ([], 0.1, 0.5),
        ([np.array([0.0])], 0.1, 0.5),
        ([np.array([0.0, 0.4])], 0.1, 0.2),
        ([np.array([0.0, 0.4, 0.2])], 0.0, 0.3),
        ([np.array([0.0, 0.0])], 1.0, 1e-9),
    ],
)
def test_there_is_a_threshold_for_any_documents(documents, rate, expected):
    assert choose_threshold(documents, rate) == pytest.approx(expected)
