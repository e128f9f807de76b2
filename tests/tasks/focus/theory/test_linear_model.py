"""Gradient descent on the real linear model goes where the theory says."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.tasks.focus.theory.annealed import SteepestFlow
from neural.tasks.focus.theory.linear_model import (
    compute_gradients,
    create_linear_mosaics,
    run_gradient_descent,
)
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import create_flow

STAGES = [("soft",), ("hard",), ("lvml",), ("renyi:2",), ("soft", "hard"), ("lvml", "hard")]


def test_only_the_foreground_determines_the_label():
    data = create_linear_mosaics(3, 5, examples=11, seed=2)
    assert data.segments.shape == (11, 5, 3)
    assert data.segments.sum() == 11
    rows = np.arange(11)
    assert (data.segments[rows, data.foreground].argmax(-1) == data.labels).all()
    assert np.bincount(data.labels).tolist() == [4, 4, 3]
    assert len(set(data.foreground)) > 1
    assert (create_linear_mosaics(3, 5, examples=11, seed=2).foreground == data.foreground).all()
    with pytest.raises(TaskError, match="m is the number of segments"):
        create_linear_mosaics(3, 1)


@pytest.mark.parametrize("order", [None, 0.0, 1.0, 2.5])
def test_loss_and_gradients_are_those_of_torch(order):
    random = np.random.default_rng(0)
    data = create_linear_mosaics(5, 4, examples=10)
    u, w = random.normal(size=5), random.normal(size=(5, 5))
    x, y = torch.tensor(data.segments), torch.tensor(data.labels)
    focus, classifier = torch.tensor(u, requires_grad=True), torch.tensor(w, requires_grad=True)
    a = (x @ focus).softmax(-1)
    if order is None:
        loss = torch.nn.functional.cross_entropy((a[..., None] * x).sum(1) @ classifier.T, y)
    else:
        picked = (x @ classifier.T).log_softmax(-1)[torch.arange(10), :, y]
        each = (
            -(a * picked).sum(-1)
            if order == 0
            else -(a * (order * picked).exp()).sum(-1).log() / order
        )
        loss = each.mean()
    loss.backward()
    merged_value = compute_gradients(data, u, w, order)
    assert merged_value[0] == pytest.approx(loss.item(), rel=1e-12)
    assert merged_value[1] == pytest.approx(focus.grad.numpy(), abs=1e-12)
    assert merged_value[2] == pytest.approx(classifier.grad.numpy(), abs=1e-12)


@pytest.mark.parametrize("stages", STAGES, ids=" → ".join)
def test_descent_follows_the_predicted_path(stages):
    setting = LinearSetting(5, 4)
    measured = run_gradient_descent(setting, stages, 60.0, step=0.04)
    predicted = create_flow(setting, *stages)
    path = predicted.trajectory(measured.time)
    assert measured.focus[-1] > 0.6
    assert np.abs(path.focus - measured.focus).max() < 1e-3
    assert measured.switches == pytest.approx(predicted.switches, abs=0.2)
    assert measured.time_to(0.6) == pytest.approx(predicted.time_to(0.6), rel=1e-3)
    if len(stages) == 1:
        assert np.abs(path.loss - measured.loss).max() < 1e-3
        assert np.abs(path.margin - measured.margin).max() < 2e-3


def test_descent_follows_the_steepest_order_and_another_learning_rate():
    measured = run_gradient_descent(LinearSetting(3, 30), ("steepest",), 70.0)
    predicted = SteepestFlow(LinearSetting(3, 30))
    assert np.abs(predicted.trajectory(measured.time).focus - measured.focus).max() < 5e-3
    faster = LinearSetting(5, 4, 3.0)
    measured = run_gradient_descent(faster, ("soft",), 40.0, step=0.03)
    assert (
        np.abs(create_flow(faster, "soft").trajectory(measured.time).focus - measured.focus).max()
        < 1e-3
    )


def test_longer_strides_need_fewer_steps():
    setting = LinearSetting(3, 10)
    measured = run_gradient_descent(setting, ("hard",), 1000.0, stride=0.02)
    assert len(measured.time) < 2000
    assert measured.time[-1] == 1000
    assert measured.time_to(0.95) == pytest.approx(
        create_flow(setting, "hard").time_to(0.95), rel=0.01
    )
    assert measured.time_to(0.9999) == np.inf


def test_gradient_descent_refuses_an_unknown_loss():
    with pytest.raises(TaskError, match="not `sparsemax`"):
        run_gradient_descent(LinearSetting(3, 4), ("sparsemax",), 1.0)


@pytest.mark.parametrize("order", [None, 0.0, 1.0, 2.5])
def test_merging_equal_background_segments_keeps_loss_and_gradients(order):
    random = np.random.default_rng(0)
    data = create_linear_mosaics(5, 7, examples=10)
    merged = data.merge_background()
    assert merged.segments.shape == (10, 2, 5)
    u, w = random.normal(size=5), random.normal(size=(5, 5))
    for merged_value, full_value in zip(
        compute_gradients(merged, u, w, order), compute_gradients(data, u, w, order), strict=True
    ):
        assert merged_value == pytest.approx(full_value, abs=1e-12)


def test_a_background_of_different_segments_is_not_merged():
    data = create_linear_mosaics(5, 7, examples=10)
    data.segments[3, (data.foreground[3] + 2) % 7, 0] = 0.5
    assert data.merge_background() is data
