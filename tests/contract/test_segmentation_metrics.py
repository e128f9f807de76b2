"""Contract of the segmentation metrics."""

import sys
import tracemalloc

import numpy as np
import pytest

from neural.tasks.segmentation.boundary_encoding import labels_to_boundaries
from neural.tasks.segmentation.metrics import registry

every_metric = pytest.mark.parametrize("name", registry.names())


def make_documents(input_kind, *, documents=7, seed=0, sizes=(1, 2, 3, 29)):
    """True and predicted arrays of several documents, including short ones."""
    generator = np.random.default_rng(seed)
    pairs = []
    for number in range(documents):
        labels = generator.integers(0, 3, (2, sizes[number % len(sizes)]))
        pairs.append(
            tuple(labels) if input_kind == "labels" else tuple(map(labels_to_boundaries, labels))
        )
    return tuple(zip(*pairs, strict=True))


def score_corpus(metric, truths, predictions):
    return metric.scores(metric.count_documents(truths, predictions).sum(axis=0))


@every_metric
def test_a_perfect_prediction_has_the_best_score(name):
    metric = registry.get(name)()
    truths, _ = make_documents(metric.input_kind)
    for value in score_corpus(metric, truths, truths).values():
        assert value == {"low": 0, "high": 1}[metric.better]


@every_metric
def test_scores_are_between_0_and_1_and_depend_on_errors(name):
    metric = registry.get(name)()
    scores = score_corpus(metric, *make_documents(metric.input_kind))
    assert name in scores
    assert all(0 < value < 1 for value in scores.values())


@every_metric
def test_the_counts_of_documents_add_up(name):
    metric = registry.get(name)()
    truths, predictions = make_documents(metric.input_kind)
    counts = metric.count_documents(truths, predictions)
    assert counts.shape[0] == len(truths)
    twice = metric.count_documents(truths * 2, predictions * 2).sum(axis=0)
    np.testing.assert_allclose(twice, 2 * counts.sum(axis=0))
    stacked = metric.scores(np.stack([counts.sum(axis=0), twice]))
    for score, value in score_corpus(metric, truths, predictions).items():
        np.testing.assert_allclose(stacked[score], [value, value])


@every_metric
def test_the_order_of_the_documents_does_not_matter(name):
    metric = registry.get(name)()
    truths, predictions = make_documents(metric.input_kind)
    scores, reversed_scores = (
        score_corpus(metric, truths, predictions),
        score_corpus(metric, truths[::-1], predictions[::-1]),
    )
    for score in scores:
        assert scores[score] == pytest.approx(reversed_scores[score])


@every_metric
def test_arrays_of_different_lengths_are_refused(name):
    metric = registry.get(name)()
    (truth, *_), _ = make_documents(metric.input_kind, sizes=(5,))
    with pytest.raises(ValueError, match="not the same document"):
        metric.score(truth, truth[:-1])


@every_metric
def test_memory_grows_linearly_with_the_document(name):
    metric = registry.get(name)()
    (truth,), (prediction,) = make_documents(metric.input_kind, documents=1, sizes=(30_011,))
    tracemalloc.start()
    metric.score(truth, prediction)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300 * len(truth)


@every_metric
def test_a_metric_has_docstrings_that_name_the_best_score(name):
    entry = registry.get(name)
    assert entry.__module__ == f"{registry.package}.{name}"
    assert entry.summary().endswith({"low": ": 0 is best.", "high": ": 1 is best."}[entry.better])
    assert sys.modules[entry.__module__].__doc__
