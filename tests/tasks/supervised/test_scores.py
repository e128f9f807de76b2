"""Scores agree with scikit-learn, and their influences with leaving out each group."""

import numpy as np
import pytest
import sklearn.metrics as reference

from neural.tasks.supervised.scores import (
    count_confusions,
    create_interval,
    estimate_class_scores,
    estimate_lift,
    estimate_value_scores,
)

CLASSES = 4


@pytest.fixture
def rows():
    """Probabilities with ties, truths and groups of one to three rows."""
    random = np.random.default_rng(0)
    probabilities = np.round(random.dirichlet(np.full(CLASSES, 0.7), 90), 1) + 0.01
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    truth = np.array([random.choice(CLASSES, p=row) for row in probabilities])
    _, groups = np.unique(random.integers(0, 50, 90), return_inverse=True)
    return probabilities, truth, groups


def test_class_scores_equal_those_of_scikit_learn(rows):
    probabilities, truth, groups = rows
    predicted, one_hot = probabilities.argmax(axis=1), np.eye(CLASSES)[truth]
    expected = {
        "accuracy": reference.accuracy_score(truth, predicted),
        "balanced_accuracy": reference.balanced_accuracy_score(truth, predicted),
        "macro_f1": reference.f1_score(truth, predicted, average="macro"),
        "log_loss": reference.log_loss(truth, probabilities),
        "roc_auc": reference.roc_auc_score(truth, probabilities, multi_class="ovr"),
        "pr_auc": reference.average_precision_score(one_hot, probabilities),
    }
    scores = estimate_class_scores(probabilities, truth, groups)
    assert {name: item.value for name, item in scores.items()} == pytest.approx(expected)
    np.testing.assert_array_equal(
        count_confusions(truth, predicted, CLASSES), reference.confusion_matrix(truth, predicted)
    )


def test_the_areas_of_two_classes_are_those_of_the_second(rows):
    probabilities, truth, groups = rows
    p, is_last = probabilities[:, 3], (truth == 3).astype(int)
    scores = estimate_class_scores(np.stack([1 - p, p], axis=1), is_last, groups)
    assert scores["roc_auc"].value == pytest.approx(reference.roc_auc_score(is_last, p))
    assert scores["pr_auc"].value == pytest.approx(reference.average_precision_score(is_last, p))


def test_the_influence_of_a_group_is_the_change_without_it(rows):
    probabilities, truth, groups = rows
    scores = estimate_class_scores(probabilities, truth, groups)
    for group in range(5):
        is_left = groups != group
        _, other_groups = np.unique(groups[is_left], return_inverse=True)
        without = estimate_class_scores(probabilities[is_left], truth[is_left], other_groups)
        for name in ("accuracy", "balanced_accuracy", "macro_f1", "log_loss"):
            change = scores[name].value - without[name].value
            assert scores[name].documents[group] == pytest.approx(change), name


def test_the_influence_of_an_example_on_the_areas_is_the_change_without_it(rows):
    probabilities, truth, _ = rows
    single = np.arange(len(truth))
    scores = estimate_class_scores(probabilities, truth, single)
    changes = {"roc_auc": [], "pr_auc": []}
    for index in single:
        is_left = single != index
        without = estimate_class_scores(probabilities[is_left], truth[is_left], single[:-1])
        for name, values in changes.items():
            values.append(scores[name].value - without[name].value)
    np.testing.assert_allclose(scores["roc_auc"].documents, changes["roc_auc"], atol=1e-12)
    # of the precision-recall area it is the derivative: close, not equal
    correlation = np.corrcoef(scores["pr_auc"].documents, changes["pr_auc"])[0, 1]
    assert correlation > 0.95
    assert np.std(scores["pr_auc"].documents) == pytest.approx(np.std(changes["pr_auc"]), rel=0.2)


def test_value_scores_equal_those_of_scikit_learn():
    random = np.random.default_rng(0)
    truth = random.normal(size=(50, 2)) + 1e6  # large means, small differences
    predictions = truth + 0.4 * random.normal(size=(50, 2))
    scores = estimate_value_scores(predictions, truth, np.arange(50))
    assert {name: item.value for name, item in scores.items()} == pytest.approx(
        {
            "mae": reference.mean_absolute_error(truth, predictions),
            "rmse": reference.root_mean_squared_error(truth, predictions),
            "r2": reference.r2_score(truth, predictions),
        }
    )
    constant = estimate_value_scores(predictions, np.full((50, 2), 3.0), np.arange(50))
    assert set(constant) == {"mae", "rmse"}, "there is no R² of a constant"


def test_intervals_stay_in_the_range_of_the_score(rows):
    scores = estimate_class_scores(*rows)
    for name, item in scores.items():
        interval = create_interval(name, item, 9)
        assert interval.low < interval.value < interval.high
        assert interval.low > 0
        assert name == "log_loss" or interval.high < 1
    truth = np.arange(20.0)[:, None]
    random = np.random.default_rng(0)
    values = estimate_value_scores(
        truth + 0.1 * random.normal(size=truth.shape), truth, np.arange(20)
    )
    r2 = create_interval("r2", values["r2"], 0)
    assert 0.99 < r2.low < r2.value < r2.high < 1


def test_a_perfect_score_has_an_interval_by_the_number_of_rows():
    truth = np.repeat([0, 1], 15)
    scores = estimate_class_scores(np.eye(2)[truth], truth, np.arange(30))
    interval = create_interval("accuracy", scores["accuracy"], 30)
    assert (interval.value, interval.high) == (1, 1)
    assert interval.low == pytest.approx(30 / (30 + 1.96**2), abs=1e-4)  # Wilson


def test_a_lift_is_above_zero_for_the_better_predictor():
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 200)
    good = 1 / (1 + np.exp(-(2 * truth - 1 + random.normal(size=200))))
    constant = np.full(200, 0.5)
    first, second = (
        estimate_class_scores(np.stack([1 - p, p], axis=1), truth, np.arange(200))
        for p in (good, constant)
    )
    for name in first:
        lift = estimate_lift(name, first[name], second[name])
        assert lift.low > 0, name
        assert estimate_lift(name, second[name], first[name]).high < 0, name
