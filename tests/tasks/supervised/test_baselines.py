"""Constant and linear baselines."""

import numpy as np
import pytest
import torch

from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from neural.tasks.supervised.baselines import (
    FittedRows,
    extract_features,
    predict_constant,
    predict_linear,
)

random = np.random.default_rng(0)


def network(input_shape, first_layer="Dense(3)"):
    (result,) = check(
        f"network N {{ input: {input_shape} layers: {first_layer} Output(3) "
        'loss: "sparse_categorical_crossentropy" }',
        CATALOGUE,
    ).networks
    return result


def test_the_constant_baseline_predicts_class_shares_smoothed_by_one():
    train = FittedRows(None, np.array([0, 0, 0, 1]))
    np.testing.assert_allclose(
        predict_constant("classes", train, 2, 3), [[4 / 7, 2 / 7, 1 / 7]] * 2
    )
    units = FittedRows(None, np.array([[1.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_allclose(predict_constant("binary", units, 1, 2), [[3 / 4, 2 / 4]])
    np.testing.assert_allclose(predict_constant("values", units, 1, 2), [[1, 0.5]])


def test_the_linear_baseline_finds_a_linear_relation_at_any_scale():
    x = random.normal(size=(200, 3)) * [1, 1000, 0.001]
    truth = (x[:, 0] + x[:, 2] * 1000 > 0).astype(int)
    p = predict_linear("classes", FittedRows(x[:150], truth[:150]), x[150:], 3)
    assert (p.argmax(axis=1) == truth[150:]).mean() > 0.9
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p[:, 2] > 0).all(), "a class without training rows is possible"
    both = np.stack([truth, 1 - truth], axis=1)
    units = predict_linear("binary", FittedRows(x[:150], both[:150]), x[150:], 2)
    assert ((units > 0.5) == both[150:]).mean() > 0.9
    values = (x @ [2, 0.001, 0])[:, None]
    predicted = predict_linear("values", FittedRows(x[:150], values[:150]), x[150:], 1)
    np.testing.assert_allclose(predicted, values[150:], atol=0.1)


def test_a_single_training_class_has_no_linear_baseline():
    train = FittedRows(random.normal(size=(5, 2)), np.zeros(5, dtype=int))
    assert predict_linear("classes", train, train.features, 3) is None


def test_features_of_numbers_are_flattened_without_padding():
    batch = {"x": torch.arange(12.0).reshape(2, 3, 2)}
    mask = np.array([[True, True, False], [True, True, True]])
    features = extract_features(batch, mask, network("(3, 2)", "Flatten()"), ())
    np.testing.assert_array_equal(features[0], [0, 1, 2, 3, 0, 0])
    np.testing.assert_array_equal(features[1], [6, 7, 8, 9, 10, 11])
    averaged = extract_features(batch, None, network("(None, 2)", "GlobalAveragePooling1D()"), ())
    np.testing.assert_array_equal(averaged, [[2, 3], [8, 9]])
    positions = extract_features(batch, None, network("(3, 2)"), (3,))
    np.testing.assert_array_equal(positions, batch["x"].reshape(6, 2))
    assert extract_features(batch, None, network("(3, 2)"), (7,)) is None


def test_features_of_tokens_are_counts_without_padding():
    ids = torch.tensor([[1, 2, 2, 0], [3, 0, 0, 0]])
    embedding = "Embedding(input_dim=5, output_dim=3, pad_id=0)"
    counts = extract_features({"x": ids}, None, network("(4,)", embedding), ())
    np.testing.assert_array_equal(counts.toarray(), [[0, 1, 2, 0, 0], [0, 0, 0, 1, 0]])
    positions = extract_features({"x": ids}, None, network("(4,)", embedding), (4,))
    np.testing.assert_array_equal(positions.toarray().sum(axis=1), [1, 1, 1, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("kind", ["classes", "binary"])
def test_probabilities_of_token_counts_are_finite(kind):
    counts = extract_features(
        {"x": torch.tensor([[1, 1], [2, 2], [1, 2]])},
        None,
        network("(2,)", "Embedding(input_dim=4, output_dim=3)"),
        (),
    )
    truth = np.array([0, 1, 1]) if kind == "classes" else np.array([[0.0], [1.0], [1.0]])
    assert np.isfinite(predict_linear(kind, FittedRows(counts, truth), counts, 2)).all()
