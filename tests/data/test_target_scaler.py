"""Targets of a regression are standardised with mean and deviation of the training examples."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.core.settings import load_settings
from neural.data.target_scaler import TARGET_SCALER, TargetScaler, has_linear_output
from neural.optim.catalogue import CATALOGUE
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from tests.tasks.networks import build_network, program

MSE = 'loss: "mse"'


def test_every_unit_has_its_own_mean_and_deviation():
    y = np.random.default_rng(0).normal((5, -2e6), (0.1, 3e5), size=(200, 2))
    scaler = TargetScaler.fit(y)
    standardised = scaler.transform(y)
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(standardised.std(axis=0), 1)
    np.testing.assert_allclose(scaler.inverse_transform(standardised), y)


def test_tensors_are_converted_as_arrays_are():
    y = np.array([[1.0], [2.0], [6.0]], dtype=np.float32)
    scaler = TargetScaler.fit(y)
    tensor = scaler.transform(torch.tensor(y))
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor.numpy(), scaler.transform(y), rtol=1e-6)
    np.testing.assert_allclose(scaler.inverse_transform(tensor).numpy(), y, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 7.0, 0.1])
def test_a_constant_target_is_not_divided_by_zero(value):
    y = np.full((30, 1), value)
    scaler = TargetScaler.fit(y)
    assert scaler.std == (1.0,)
    np.testing.assert_allclose(scaler.transform(y), 0, atol=1e-12)
    np.testing.assert_allclose(scaler.inverse_transform(np.zeros((2, 1))), value)


def test_a_saved_scaler_is_read_back():
    scaler = TargetScaler((1.5, 2.0), (0.5, 3.0))
    assert TARGET_SCALER.accepts(scaler.to_dict())
    assert TargetScaler.from_dict(scaler.to_dict()) == scaler
    for broken in ({"mean": [1.0]}, {"mean": [1.0], "std": [0.0]}, {"mean": [1.0], "std": []}, 3):
        assert not TARGET_SCALER.accepts(broken)


@pytest.mark.parametrize(
    ("layer", "is_linear"),
    [("Dense(1)", True), ('Dense(1, activation="relu")', False), ("Output(1)", True)],
)
def test_an_output_with_an_activation_cannot_predict_every_number(layer, is_linear):
    assert has_linear_output(build_network("(3,)", layer, MSE)) == is_linear


def create_task(layers, loss, arrays, shape="(3,)"):
    settings = {"network": program(shape, layers, loss), "standardize_target": True}
    experiment = load_settings(SupervisedSettings, settings)
    return Supervised(experiment, None, CATALOGUE, data=arrays)


@pytest.mark.parametrize(
    ("layers", "loss", "message"),
    [
        (
            'Output(2, activation="softmax")',
            'loss: "sparse_categorical_crossentropy"',
            "`standardize_target` is for numbers",
        ),
        ('Dense(1, activation="relu")', MSE, "needs an output without activation.*`relu`"),
    ],
)
def test_a_network_that_cannot_predict_standardised_targets_is_refused(layers, loss, message):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    with pytest.raises(TaskError, match=message):
        create_task(layers, loss, {"x": X, "y": np.arange(20) % 2})


def test_padding_is_not_measured():
    X = np.zeros((20, 4, 3), dtype=np.float32)
    mask = np.tile([True, True, False, False], (20, 1))
    y = np.where(mask[..., None], np.random.default_rng(0).normal(50, 2, (20, 4, 1)), -1e6)
    task = create_task("Dense(1)", MSE, {"x": X, "y": y, "mask": mask}, shape="(4, 3)")
    expected = y[task.data.sampler.examples, :2]
    assert task.target_scaler.mean == pytest.approx((expected.mean(),))
    assert task.target_scaler.std == pytest.approx((expected.std(),))


def test_held_out_targets_are_not_measured():
    X = np.zeros((40, 3), dtype=np.float32)
    y = np.arange(40.0) ** 2
    task = create_task("Dense(1)", MSE, {"x": X, "y": y})
    assert len(task.data.sampler.examples) < 40
    assert task.target_scaler.mean == pytest.approx((y[task.data.sampler.examples].mean(),))
