"""What every segmentation metric promises."""

import sys
import tracemalloc

import numpy as np
import pytest

from neural.tasks.cutting.masses import label_changes
from neural.tasks.cutting.metrics import registry

every_metric = pytest.mark.parametrize("name", registry.names())


def some(reads, *, documents=7, seed=0, sizes=(1, 2, 3, 29)):
    """True and predicted arrays of several documents, short ones among them."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(documents):
        labels = generator.integers(0, 3, (2, sizes[number % len(sizes)]))
        found.append(tuple(labels) if reads == "labels" else tuple(map(label_changes, labels)))
    return tuple(zip(*found, strict=True))


def whole(metric, truths, predictions):
    return metric.scores(metric.counts(truths, predictions).sum(axis=0))


@every_metric
def test_a_perfect_answer_scores_at_the_good_end(name):
    metric = registry.get(name)()
    truths, _ = some(metric.reads)
    for value in whole(metric, truths, truths).values():
        assert value == {"low": 0, "high": 1}[metric.better]


@every_metric
def test_scores_lie_between_0_and_1_and_mistakes_are_seen(name):
    metric = registry.get(name)()
    found = whole(metric, *some(metric.reads))
    assert name in found
    assert all(0 < value < 1 for value in found.values())


@every_metric
def test_the_counts_of_documents_add_up(name):
    metric = registry.get(name)()
    truths, predictions = some(metric.reads)
    counts = metric.counts(truths, predictions)
    assert counts.shape[0] == len(truths)
    twice = metric.counts(truths * 2, predictions * 2).sum(axis=0)
    np.testing.assert_allclose(twice, 2 * counts.sum(axis=0))
    stacked = metric.scores(np.stack([counts.sum(axis=0), twice]))
    for score, value in whole(metric, truths, predictions).items():
        np.testing.assert_allclose(stacked[score], [value, value])


@every_metric
def test_the_order_of_the_documents_does_not_matter(name):
    metric = registry.get(name)()
    truths, predictions = some(metric.reads)
    found, again = whole(metric, truths, predictions), whole(metric, truths[::-1], predictions[::-1])
    for score in found:
        assert found[score] == pytest.approx(again[score])


@every_metric
def test_arrays_of_different_lengths_are_refused(name):
    metric = registry.get(name)()
    (truth, *_), _ = some(metric.reads, sizes=(5,))
    with pytest.raises(ValueError, match="not the same document"):
        metric.of(truth, truth[:-1])


@every_metric
def test_memory_grows_with_the_document_and_not_with_its_square(name):
    metric = registry.get(name)()
    (truth,), (prediction,) = some(metric.reads, documents=1, sizes=(30_011,))
    tracemalloc.start()
    metric.of(truth, prediction)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300 * len(truth)


@every_metric
def test_a_metric_says_what_it_is_and_which_end_is_best(name):
    entry = registry.get(name)
    assert entry.__module__ == f"{registry.package}.{name}"
    assert entry.summary().endswith({"low": ": 0 is best.", "high": ": 1 is best."}[entry.better])
    assert sys.modules[entry.__module__].__doc__
