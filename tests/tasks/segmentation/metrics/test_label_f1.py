"""Macro F1 of labels: compared with scikit-learn; missing classes and documents."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from neural.tasks.segmentation.metrics.label_f1 import LabelF1


def test_scikit_learn_agrees():
    rng = np.random.default_rng(0)
    truth, prediction = rng.integers(0, 5, (2, 97))
    assert LabelF1().score(truth, prediction) == pytest.approx(
        f1_score(truth, prediction, average="macro")
    )


def test_elements_of_all_documents_are_pooled():
    metric = LabelF1()
    counts = metric.count_documents([[0, 0, 1], [2]], [[0, 1, 1], [2]])
    assert float(metric.scores(counts.sum(axis=0))["label_f1"]) == pytest.approx(
        (2 / 3 + 2 / 3 + 1) / 3
    )


def test_a_class_that_does_not_occur_does_not_count():
    assert LabelF1().score([0, 4], [0, 4]) == 1
    assert LabelF1().score([0, 0], [0, 1]) == pytest.approx((2 / 3 + 0) / 2)


def test_a_document_without_labels_adds_nothing():
    counts = LabelF1().count_documents([[0, 1], []], [[0, 1], []])
    assert float(LabelF1().scores(counts.sum(axis=0))["label_f1"]) == 1
    assert np.isnan(LabelF1().score([], []))


@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        ([0, 1], [0], "not the same document"),
        ([-1], [0], "true labels"),
        ([0], [0.5], "predicted labels"),
    ],
)
def test_invalid_labels_are_refused(truth, prediction, message):
    with pytest.raises(ValueError, match=message):
        LabelF1().score(truth, prediction)
